# One place for the flags and for the shape of a target.
#
#   levin_library(NAME SOURCES a.cc b.cc DEPS other_lib ... [COMPUTES] [OWN_FLAGS])
#                                              one static library per folder; COMPUTES: optimised in debug builds too;
#                                              OWN_FLAGS: compiled unlike the others
#   levin_test(NAME SOURCES x_test.cc DEPS ... [LABEL unit] [COMPUTES] [PURE])
#                                              one GoogleTest binary, one CTest entry per test case file; PURE: starts no
#                                              thread, so TSan does not see it
#   levin_program(NAME SOURCES main.cc DEPS ...)               binary in ${CMAKE_BINARY_DIR}/bin

add_library(levin_flags INTERFACE)
target_compile_features(levin_flags INTERFACE cxx_std_20)
target_include_directories(levin_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(levin_flags INTERFACE -Wall -Wextra -Werror=return-type -Wno-unused-parameter
  # libstdc++ 12 and Asio raise false alarms under optimisation and TSan.
  -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
if(LEVIN_SANITIZE)
  # A fifth of the compile time for what ASan reports as well.
  if(LEVIN_SANITIZE MATCHES undefined)
    set(twice -fno-sanitize=null,vptr,object-size)
  else()
    set(twice)
  endif()
  target_compile_options(levin_flags INTERFACE -fsanitize=${LEVIN_SANITIZE} ${twice} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(levin_flags INTERFACE -fsanitize=${LEVIN_SANITIZE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(levin_flags INTERFACE Threads::Threads)
# Precompiled headers want one set of flags: -pthread on all, because gRPC brings it to some; -fpch-preprocess for ccache.
set(precompiled_options -pthread $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)

# Three quarters of a small file's compile time are the standard library's headers. Sanitizer builds precompile them; the
# release build does not, and so proves that every file includes what it uses.
set(LEVIN_STD_HEADERS <algorithm> <array> <atomic> <chrono> <cmath> <condition_variable> <cstdint> <cstdio> <filesystem>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread> <unordered_map>
  <unordered_set> <variant> <vector>)
# A source file to hang precompiled headers on; written once, or every configure would compile them again.
set(header_holder ${CMAKE_BINARY_DIR}/header_holder.cc)
if(NOT EXISTS ${header_holder})
  file(WRITE ${header_holder} "// Holds precompiled headers.\n")
endif()
if(LEVIN_SANITIZE)
  target_compile_options(levin_flags INTERFACE ${precompiled_options})
  foreach(level O0 O1)
    add_library(std_headers_${level} OBJECT ${header_holder})
    target_link_libraries(std_headers_${level} PRIVATE levin_flags)
    target_compile_options(std_headers_${level} PRIVATE -${level})
    target_precompile_headers(std_headers_${level} PRIVATE ${LEVIN_STD_HEADERS})
  endforeach()
endif()

function(levin_library name)
  cmake_parse_arguments(ARG "COMPUTES;OWN_FLAGS" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC levin_flags ${ARG_DEPS})
    set(level O0)
    if(ARG_COMPUTES)
      set(level O1)
      target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O1>)
    endif()
    if(LEVIN_SANITIZE AND NOT ARG_OWN_FLAGS)
      target_precompile_headers(${name} REUSE_FROM std_headers_${level})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE levin_flags ${ARG_DEPS})
  endif()
endfunction()

function(levin_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE levin_flags ${ARG_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# Half of all compile time would be the optimiser's work on tests that run for milliseconds: a test's own code is compiled
# with -O0 unless it COMPUTES (a reference network, a long simulation). The library under test keeps the build's flags.
# All tests start from one precompiled GoogleTest.
if(LEVIN_TESTS)
  foreach(level O0 O2)
    add_library(test_headers_${level} OBJECT ${header_holder})
    target_link_libraries(test_headers_${level} PRIVATE levin_flags GTest::gmock GTest::gtest)
    target_compile_options(test_headers_${level} PRIVATE -${level} ${precompiled_options})
    target_precompile_headers(test_headers_${level} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endforeach()
endif()

function(levin_test name)
  cmake_parse_arguments(ARG "COMPUTES;PURE" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT LEVIN_TESTS OR (ARG_PURE AND LEVIN_SANITIZE STREQUAL "thread"))
    return()
  endif()
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE levin_flags ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE LEVIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" LEVIN_BINARY_DIR="${CMAKE_BINARY_DIR}")
  set(level O0)
  if(ARG_COMPUTES)
    set(level O2)
  endif()
  target_compile_options(${name} PRIVATE -${level} ${precompiled_options})
  target_precompile_headers(${name} REUSE_FROM test_headers_${level})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(LEVIN_SANITIZE STREQUAL "thread")
    # A test asks for more memory than there is; TSan would abort instead of saying no.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=allocator_may_return_null=1")
  endif()
endfunction()
