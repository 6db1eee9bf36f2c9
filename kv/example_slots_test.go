package kv_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/siftkv/siftkv/kv"
)

// A copy follows a store, and notes how far it is with what it has: so it has each change once, whatever crashes.
func ExampleDB_CreateSlot() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := kv.Open(filepath.Join(dir, "store"), nil)
	if err != nil {
		panic(err)
	}
	replica, err := kv.Open(filepath.Join(dir, "copy"), nil)
	if err != nil {
		panic(err)
	}
	_ = db.Set([]byte("apple"), []byte("red"), kv.Sync)
	ctx, cancel := context.WithCancel(context.Background())
	writes := func() {
		_ = db.Set([]byte("banana"), []byte("yellow"), kv.Sync)
		_ = db.Delete([]byte("apple"), kv.Sync)
	}
	if err := follow(ctx, db, replica, writes, cancel); !errors.Is(err, context.Canceled) {
		panic(err)
	}
	for key, value := range replica.All(nil, &err) {
		fmt.Printf("%s %s\n", key, value)
	}
	fmt.Println(errors.Join(err, replica.Close(), db.Close()))
	// Output:
	// banana yellow
	// position 3
	// <nil>
}

func follow(ctx context.Context, db, replica *kv.DB, writes, done func()) error {
	slot, snapshot, err := db.CreateSlot(ctx, "copy")
	if err != nil {
		return err
	}
	defer slot.Close()
	batch := replica.NewBatch()
	for key, value := range snapshot.All(nil, &err) {
		err = errors.Join(err, batch.Set(key, value))
	}
	if err := errors.Join(err, batch.Commit(kv.Sync), snapshot.Close()); err != nil {
		return err
	}
	writes()
	for change, err := range slot.Changes(ctx) {
		if err != nil {
			return err
		}
		batch.Reset()
		if err := change.Replay(batch); err != nil {
			return err
		}
		if err := batch.Set([]byte("position"), fmt.Append(nil, change.Last())); err != nil {
			return err
		}
		if err := batch.Commit(kv.Sync); err != nil {
			return err
		}
		if err := slot.Ack(change.Last()); err != nil {
			return err
		}
		if slot.Position() == 3 {
			done()
		}
	}
	return nil
}

// A consumer in another process than the store's writer opens a view, and the slot of that. Both are one process here.
func ExampleDB_SnapshotOf() {
	dir, err := os.MkdirTemp("", "siftkv")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := kv.Open(dir, nil)
	if err != nil {
		panic(err)
	}
	made, first, err := db.CreateSlot(ctx, "copy") // once, by the writer
	if err = errors.Join(err, first.Close(), made.Close()); err != nil {
		panic(err)
	}
	_ = db.Set([]byte("apple"), []byte("red"), kv.NoSync)

	view, err := kv.OpenReadOnly(dir, nil)
	if err != nil {
		panic(err)
	}
	slot, err := view.OpenSlot("copy")
	if err != nil {
		panic(err)
	}
	replica, err := kv.Open("", &kv.Options{InMemory: true})
	if err != nil {
		panic(err)
	}
	snapshot, err := view.SnapshotOf(ctx, slot)
	if err != nil {
		panic(err)
	}
	batch := replica.NewBatch()
	for key, value := range snapshot.All(nil, &err) {
		err = errors.Join(err, batch.Set(key, value))
	}
	if err := errors.Join(err, snapshot.Close(), batch.Commit(nil), slot.Ack(slot.Position())); err != nil {
		panic(err)
	}
	_ = db.Set([]byte("apple"), []byte("green"), kv.NoSync)
	for change, err := range slot.Changes(ctx) {
		batch.Reset()
		if err := errors.Join(err, change.Replay(batch), batch.Commit(nil)); err != nil {
			panic(err)
		}
		if change.Last() == 2 {
			break
		}
	}
	apple, err := replica.Get([]byte("apple"))
	fmt.Printf("%s %v\n", apple, errors.Join(err, replica.Close(), slot.Close(), view.Close(), db.Close()))
	// Output:
	// green <nil>
}
