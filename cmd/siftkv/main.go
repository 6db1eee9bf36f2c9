// Command siftkv looks into a store, changes it, checks it, copies it, and repairs it.
//
//	siftkv scan DIR --prefix user/
//	siftkv verify DIR
//	siftkv repair DIR --dry-run
//	siftkv copy DIR dir://OBJECTS
//
// A store is a directory, or is in an object store. siftkv --help says which commands work while a program writes.
// The program github.com/siftkv/siftkv/objstore/s3/cmd/siftkv is the same, with S3. Standard output carries results,
// standard error progress and errors.
package main

import "github.com/siftkv/siftkv/internal/storecmd"

func main() { storecmd.Main(nil) }
