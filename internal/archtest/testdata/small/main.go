// Small opens a store in the directory that it is given. It prints a line of its memory without mapped files once
// the store is open, where the system tells, then writes a key and reads it.
package main

import (
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/siftkv/siftkv/kv"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(dir string) error {
	db, err := kv.Open(dir, nil)
	if err != nil {
		return err
	}
	status, _ := os.ReadFile("/proc/self/status") // there is none on other systems
	for line := range strings.Lines(string(status)) {
		if strings.HasPrefix(line, "RssAnon:") {
			fmt.Print(line)
		}
	}
	if err := db.Set([]byte("key"), []byte("value"), nil); err != nil {
		return err
	}
	if _, err := db.Get([]byte("key")); err != nil {
		return err
	}
	return db.Close()
}
