// SPDX-License-Identifier: Apache-2.0
// Two ranks exchange heap blocks of many sizes; rank 0 prints one checksum of what everybody received.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char** arguments) {
    int rank, size;
    unsigned long sum = 0, total = 0;
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 60; ++round) {
        const int bytes = 100 << (round % 16);
        unsigned char* out = malloc((size_t)bytes);
        unsigned char* in = calloc(1, (size_t)bytes);
        for (int i = 0; i < bytes; ++i) out[i] = (unsigned char)(i * 31 + rank + round);
        MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE, (rank + size - 1) % size, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; ++i) sum = sum * 131 + in[i];
        free(out);
        free(in);
    }
    MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%d ranks, checksum %lu\n", size, total);
    MPI_Finalize();
    return 0;
}
