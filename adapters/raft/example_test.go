package siftraft_test

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	siftraft "github.com/siftkv/siftkv/adapters/raft"
	"github.com/siftkv/siftkv/kv"
)

// A cluster of one node.
func Example() {
	dir, err := os.MkdirTemp("", "siftraft")
	check(err)
	defer os.RemoveAll(dir)
	store, err := siftraft.Open(filepath.Join(dir, "log"), nil)
	check(err)
	fsm, err := siftraft.OpenFSM(filepath.Join(dir, "state"), nil)
	check(err)
	snapshots, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
	check(err)
	check(fsm.CatchUp(snapshots)) // for NoSnapshotRestoreOnStart

	conf := raft.DefaultConfig()
	conf.LocalID, conf.LogOutput, conf.NoSnapshotRestoreOnStart = "one", io.Discard, true
	address, transport := raft.NewInmemTransport("")
	check(raft.BootstrapCluster(conf, store, store, snapshots, transport,
		raft.Configuration{Servers: []raft.Server{{ID: "one", Address: address}}}))
	node, err := raft.NewRaft(conf, fsm, store, store, snapshots, transport)
	check(err)
	for range node.LeaderCh() { // until it leads
		break
	}

	var c siftraft.Command
	check(c.Set([]byte("apple"), []byte("red")))
	check(c.Set([]byte("pear"), []byte("green")))
	future := node.Apply(c.Bytes(), 0)
	fmt.Println(future.Error(), future.Response())
	check(fsm.View(func(s *kv.Snapshot) error {
		color, err := s.Get([]byte("pear"))
		fmt.Printf("%s\n", color)
		return err
	}))
	check(node.Snapshot().Error())

	check(node.Shutdown().Error())
	check(fsm.Close())
	check(store.Close())
	// Output:
	// <nil> <nil>
	// green
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
