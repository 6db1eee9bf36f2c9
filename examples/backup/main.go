// Backup writes a full backup of a store in use and one of what has changed since, and makes a new store
// of the two. A backup is a stream: it may go to a file, a pipe or a connection.
//
//	go run ./examples/backup DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: backup DIR")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) (err error) {
	db, err := kv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	full, since := filepath.Join(dir, "monday.backup"), filepath.Join(dir, "tuesday.backup")

	err = db.Set([]byte("monday"), []byte("rain"), nil)
	if err != nil {
		return err
	}
	mark, err := save(db, full, kv.BackupMark{}) // since nothing: a full one
	if err != nil {
		return err
	}
	err = db.Set([]byte("tuesday"), []byte("sun"), nil)
	if err != nil {
		return err
	}
	if _, err := save(db, since, mark); err != nil {
		return err
	}

	restored := filepath.Join(dir, "restored")
	for _, path := range []string{full, since} { // in this order
		if err := load(path, restored); err != nil {
			return err
		}
	}
	copied, err := kv.Open(restored, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	var failed error
	for day, weather := range copied.All(nil, &failed) {
		fmt.Printf("%s: %s\n", day, weather)
	}
	return failed
}

// save writes what came to the store since the mark, and returns the mark for the next time.
func save(db *kv.DB, path string, since kv.BackupMark) (mark kv.BackupMark, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return mark, err
	}
	mark, err = db.Backup(context.Background(), f, since)
	if err == nil {
		err = f.Sync()
	}
	return mark, errors.Join(err, f.Close())
}

// load verifies a backup to its last byte and then restores it.
func load(path, dir string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := kv.VerifyBackup(f); err != nil {
		return err
	}
	if _, err := f.Seek(0, 0); err != nil {
		return err
	}
	return kv.Restore(context.Background(), f, dir, nil)
}
