# One place for the flags and for the shape of a target.
#
#   levin_library(NAME SOURCES a.cc b.cc DEPS other_lib ... [COMPUTES])
#                                              one static library per folder; COMPUTES: optimised in debug builds too
#   levin_test(NAME SOURCES x_test.cc DEPS ... [LABEL unit] [COMPUTES])
#                                              one GoogleTest binary, one CTest entry per test case file
#   levin_program(NAME SOURCES main.cc DEPS ...)               binary in ${CMAKE_BINARY_DIR}/bin

add_library(levin_flags INTERFACE)
target_compile_features(levin_flags INTERFACE cxx_std_20)
target_include_directories(levin_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(levin_flags INTERFACE -Wall -Wextra -Werror=return-type -Wno-unused-parameter
  # libstdc++ 12 and Asio raise false alarms under optimisation and TSan.
  -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
if(LEVIN_SANITIZE)
  target_compile_options(levin_flags INTERFACE -fsanitize=${LEVIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(levin_flags INTERFACE -fsanitize=${LEVIN_SANITIZE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(levin_flags INTERFACE Threads::Threads)

function(levin_library name)
  cmake_parse_arguments(ARG "COMPUTES" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC levin_flags ${ARG_DEPS})
    if(ARG_COMPUTES)
      target_compile_options(${name} PRIVATE $<$<CONFIG:Debug>:-O1>)
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
# -pthread on all, because gRPC brings it to some; -fpch-preprocess for ccache.
set(test_options -pthread $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
if(LEVIN_TESTS)
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "// Holds the precompiled headers of the tests.\n")
  foreach(level O0 O2)
    add_library(test_headers_${level} OBJECT ${CMAKE_BINARY_DIR}/test_headers.cc)
    target_link_libraries(test_headers_${level} PRIVATE levin_flags GTest::gmock GTest::gtest)
    target_compile_options(test_headers_${level} PRIVATE -${level} ${test_options})
    target_precompile_headers(test_headers_${level} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
  endforeach()
endif()

function(levin_test name)
  cmake_parse_arguments(ARG "COMPUTES" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
  if(NOT LEVIN_TESTS)
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
  target_compile_options(${name} PRIVATE -${level} ${test_options})
  target_precompile_headers(${name} REUSE_FROM test_headers_${level})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(LEVIN_SANITIZE STREQUAL "thread")
    # A test asks for more memory than there is; TSan would abort instead of saying no.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=allocator_may_return_null=1")
  endif()
endfunction()
