#!POPCORN leaderboard padded_add
#!POPCORN gpu A100
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    a, b, room = data
    room[...] = a
    room += b
    return room
