// Package disk is a disk in memory that outlives processes and loses what was not
// synced, as disks do.
//
// A Disk holds files and directories, and of each what a power cut would leave. A
// Session is what one process sees of it: a vfs.FS whose calls may fail, take time, or
// be the last before the power is cut or the process dies, as a function says that is
// asked before each call.
//
// # What a power cut leaves
//
// Of a file, everything that a successful Sync covers, and of the rest some of the
// pages (of 512 bytes), the others being zeros, up to some length. Of a directory, the
// names as of the last SyncDir, and of the changes since then some: none, all, those up
// to a moment, or any. A rename happens as a whole or not at all.
//
// # A sync that fails
//
// The pages that it should have written are lost to the disk: they can still be read
// until the power is cut, and no later sync writes them, although it reports success.
// So Linux behaves on most file systems (Rebello et al., "Can Applications Recover from
// fsync Failures?", USENIX ATC 2020). A directory whose sync fails is spared that: a
// later sync that succeeds has made its names durable.
package disk
