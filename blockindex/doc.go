// Package blockindex maps a key to the data block that may hold it.
//
// An index is a sorted run of separators, one per block. A separator is at least the last key of its block and less
// than the first key of the next. So the first separator that is not less than a key names the only block worth
// reading. Blocks are known by their number: 0, 1, 2, ... in file order.
//
// An index is searched in the very bytes it has on disk: nothing is decoded and nothing allocated. The common prefix of
// all separators is stored once. The next eight bytes of each, read as a big-endian number, are in a separate array, so
// a binary search touches eight keys per cache line. Only keys that agree on those eight bytes are compared in full. A
// guide (Guided) says where in that array to begin.
//
// A large file's index is partitioned: its leaves are indexes of a range of
// blocks, and the top is an index of leaves. Both are this package's Index.
package blockindex
