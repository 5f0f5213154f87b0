# One place for the flags and for the shape of a target.
#
#   levin_library(NAME SOURCES a.cc b.cc DEPS other_lib ...)   one static library per folder
#   levin_test(NAME SOURCES x_test.cc DEPS ... [LABEL unit])   one GoogleTest binary, one CTest entry per test case file
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
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC levin_flags ${ARG_DEPS})
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

function(levin_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT" "SOURCES;DEPS" ${ARGN})
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
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(LEVIN_SANITIZE STREQUAL "thread")
    # A test asks for more memory than there is; TSan would abort instead of saying no.
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "TSAN_OPTIONS=allocator_may_return_null=1")
  endif()
endfunction()
