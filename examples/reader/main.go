// Reader shows a process that reads a store while another one writes it. Neither waits for the other.
// Without a second argument the program starts itself once more as the writer; by hand, in two terminals:
//
//	go run ./examples/reader DIR write
//	go run ./examples/reader DIR read
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/siftkv/siftkv/kv"
)

const last = 5

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: reader DIR [read | write]")
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, as []string) error {
	switch {
	case len(as) == 0:
		program, err := os.Executable()
		if err != nil {
			return err
		}
		writer := exec.Command(program, dir, "write")
		writer.Stderr = os.Stderr
		if err := writer.Start(); err != nil {
			return err
		}
		return errors.Join(read(dir), writer.Wait())
	case as[0] == "write":
		return write(dir)
	default:
		return read(dir)
	}
}

func write(dir string) (err error) {
	db, err := kv.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for n := range last + 1 {
		if err := db.Set([]byte("newest"), fmt.Appendf(nil, "%d", n), nil); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // a slow source of news
	}
	return nil
}

// read follows the store until the newest number is the last one.
func read(dir string) error {
	view, err := kv.OpenReadOnly(dir, nil)
	for errors.Is(err, kv.ErrNotExist) { // the writer has not made it yet
		time.Sleep(10 * time.Millisecond)
		view, err = kv.OpenReadOnly(dir, nil)
	}
	if err != nil {
		return err
	}
	for {
		newest, err := view.Get([]byte("newest")) // of the moment of the last refresh
		if err != nil && !errors.Is(err, kv.ErrNotFound) {
			return errors.Join(err, view.Close())
		}
		if string(newest) == strconv.Itoa(last) {
			fmt.Println("the reader has seen the last one:", string(newest))
			return view.Close()
		}
		if err := view.WaitForChange(context.Background()); err != nil {
			return errors.Join(err, view.Close())
		}
	}
}
