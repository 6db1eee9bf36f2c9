// Package vfs is the small file system under the store. It has files that are written once from front to back, files
// that are read at random, and the few operations on names that a log-structured store needs.
//
// There are two implementations: OS, the operating system's files, and Mem, files in
// memory. Tests of power cuts or failing disks wrap one of them: every byte that the
// store reads or writes, and every change of a name, passes through FS.
//
// # Durability
//
// A write is durable after WriteFile.Sync. A name (created, renamed, linked or removed) is durable after SyncDir of the
// directory that holds it, which for a new directory means its parent. Neither implies the other: a new file is safe
// when both have returned.
package vfs
