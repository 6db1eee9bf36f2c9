package lookuptrace_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/siftkv/siftkv/kv"
	"github.com/siftkv/siftkv/kv/lookuptrace"
)

func ExampleNew() {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.Set([]byte("apple"), []byte("red"), nil); err != nil {
		log.Fatal(err)
	}

	var trace bytes.Buffer // or a file, for kvbench trace replay
	tracer, err := lookuptrace.New(&trace, &lookuptrace.Options{OneIn: 1})
	if err != nil {
		log.Fatal(err)
	}
	db.TraceLookups(tracer)
	for _, key := range []string{"apple", "pear", "apple"} {
		if _, err := db.Has([]byte(key)); err != nil {
			log.Fatal(err)
		}
	}
	db.TraceLookups(nil)
	if err := tracer.Close(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(tracer.Stats().Recorded, "lookups,", tracer.Stats().Dropped, "dropped")
	fmt.Println("the keys are in the trace:", bytes.Contains(trace.Bytes(), []byte("apple")))
	// Output:
	// 3 lookups, 0 dropped
	// the keys are in the trace: false
}
