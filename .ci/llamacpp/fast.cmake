# Included by the project of the compute kernels alone: these are worth their optimiser, the rest of the server is not.
set(CMAKE_C_FLAGS "${CMAKE_C_FLAGS} -O2")
set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -O2")
