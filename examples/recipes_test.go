package examples

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/siftkv/siftkv/kv"
)

func openRecipe() *kv.DB {
	db, err := kv.Open("", &kv.Options{InMemory: true})
	if err != nil {
		log.Fatal(err)
	}
	return db
}

func Example_secondaryIndex() {
	db := openRecipe()
	defer db.Close()
	// setUser stores a user and its entry in the index over cities: both or neither.
	setUser := func(name, city string) error {
		return db.Update(func(tx *kv.Tx) error {
			old, err := tx.Get([]byte("user/" + name))
			if err == nil {
				err = tx.Delete([]byte("city/" + string(old) + "/" + name))
			}
			if err != nil && !errors.Is(err, kv.ErrNotFound) {
				return err
			}
			return errors.Join(tx.Set([]byte("user/"+name), []byte(city)), tx.Set([]byte("city/"+city+"/"+name), nil))
		})
	}
	fmt.Println(setUser("ann", "oslo"), setUser("bob", "rome"), setUser("bob", "oslo"))
	var err error
	for key := range db.All(&kv.IterOptions{Prefix: []byte("city/oslo/"), KeysOnly: true}, &err) {
		fmt.Printf("%s\n", key)
	}
	fmt.Println(err)
	// Output:
	// <nil> <nil> <nil>
	// city/oslo/ann
	// city/oslo/bob
	// <nil>
}

func Example_timeSeries() {
	db := openRecipe()
	defer db.Close()
	point := func(sensor string, at time.Time) []byte {
		return binary.BigEndian.AppendUint64([]byte("point/"+sensor+"/"), uint64(at.Unix()))
	}
	now := time.Unix(1_800_000_000, 0)
	for hour := range 48 {
		at := now.Add(-time.Duration(hour) * time.Hour)
		if err := db.Set(point("door", at), []byte("21 C"), kv.NoSync); err != nil {
			log.Fatal(err)
		}
	}
	// Keep a day: one range tombstone, however many points it covers.
	err := db.DeleteRange(point("door", time.Unix(0, 0)), point("door", now.Add(-24*time.Hour)), nil)
	if err != nil {
		log.Fatal(err)
	}
	n := 0
	for range db.All(&kv.IterOptions{Prefix: []byte("point/door/"), KeysOnly: true}, &err) {
		n++
	}
	fmt.Println(n, err)
	// Output: 25 <nil>
}

func Example_cache() {
	db := openRecipe()
	defer db.Close()
	fetched := 0
	fetch := func(string) ([]byte, error) { fetched++; return []byte("from the service"), nil }
	// get answers from the cache, or asks the service and keeps its answer for a minute.
	get := func(key string) ([]byte, error) {
		value, err := db.Get([]byte(key))
		if !errors.Is(err, kv.ErrNotFound) {
			return value, err
		}
		if value, err = fetch(key); err != nil {
			return nil, err
		}
		return value, db.SetTTL([]byte(key), value, time.Minute, kv.Async)
	}
	for range 3 {
		value, err := get("page")
		fmt.Println(string(value), err, fetched)
	}
	// Output:
	// from the service <nil> 1
	// from the service <nil> 1
	// from the service <nil> 1
}

func Example_jobQueue() {
	db := openRecipe()
	defer db.Close()
	for n := range 5 {
		if err := db.Set(fmt.Appendf(nil, "ready/%08d", n), fmt.Appendf(nil, "job %d", n), nil); err != nil {
			log.Fatal(err)
		}
	}
	var head []byte // claims begin here, past the tombstones of earlier ones
	var begun time.Time
	// claim leases up to n jobs until a time. One goroutine calls it, and gives the jobs to workers by a channel.
	claim := func(n int, until time.Time) (leases [][]byte, err error) {
		if time.Since(begun) > time.Second {
			head, begun = nil, time.Now() // jobs may be before it: added late, or moved back
		}
		b := db.NewBatch()
		for key, job := range db.All(&kv.IterOptions{Prefix: []byte("ready/"), LowerBound: head}, &err) {
			if len(leases) == n {
				break
			}
			lease := fmt.Appendf(nil, "lease/%012d/%s", until.Unix(), key[len("ready/"):])
			leases, head = append(leases, lease), bytes.Clone(key)
			_, _ = b.Set(lease, job), b.Delete(key) // a batch keeps its errors for Commit
		}
		if err = errors.Join(err, b.Commit(nil)); err != nil {
			head = nil
		}
		return leases, err
	}
	until := time.Unix(1_800_000_000, 0)
	leases, err := claim(3, until)
	fmt.Printf("%s %v\n", leases, err)
	// A worker that is done deletes its lease. Leases that have ended come first in their order.
	fmt.Println(db.Delete(leases[1], nil))
	fmt.Println(db.Delete(leases[0], nil), db.Set([]byte("ready/00000000"), []byte("job 0"), nil))
	begun = time.Now().Add(time.Hour) // within the second, however slow the machine is
	for range 2 {
		leases, err = claim(3, until)
		fmt.Printf("%s %v\n", leases, err)
		begun = time.Time{} // after it
	}
	// Output:
	// [lease/001800000000/00000000 lease/001800000000/00000001 lease/001800000000/00000002] <nil>
	// <nil>
	// <nil> <nil>
	// [lease/001800000000/00000003 lease/001800000000/00000004] <nil>
	// [lease/001800000000/00000000] <nil>
}
