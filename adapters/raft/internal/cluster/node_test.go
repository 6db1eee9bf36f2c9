package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	siftraft "github.com/siftkv/siftkv/adapters/raft"
	"github.com/siftkv/siftkv/kv"
)

// nodeEnv holds, in the processes that a test starts, the order of a node.
const nodeEnv = "SIFTKV_RAFT_NODE"

func TestMain(m *testing.M) {
	if text := os.Getenv(nodeEnv); text != "" {
		fmt.Fprintln(os.Stderr, runNode(text))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// An order says what a node is.
type order struct {
	ID        raft.ServerID
	Dir       string
	Servers   []raft.Server
	Bootstrap bool
	Keeps     bool   // its FSM catches up, and raft restores no snapshot when the node starts
	Stall     string // where it stops once raft runs, until it is killed; see stall
}

// A request is one of the test's to a node; what is not zero is asked. A node serves many at once.
type request struct {
	ID       int
	Write    string // an entry: answered when it is applied
	Applied  uint64 // answered when the state has the entry with this index
	Table    bool
	Snapshot bool
	Stall    string
}

// A message is what a node says: the answer to a request, or something that has happened.
type message struct {
	ID      int // of the request; 0: none
	Index   uint64
	Chain   string // of what is applied up to the index that was asked for
	Table   *table
	Error   string
	Event   string // one of those below
	Details string
}

const (
	ready    = "ready"    // raft runs
	stalled  = "stalled"  // it has come where it is to stop
	checked  = "checked"  // the verifier has found the log to be right
	mismatch = "mismatch" // the verifier has found the log to be wrong
)

// Where nodes stall.
const (
	beforeRestore = "before a restore"
	inRestore     = "in the middle of a restore"
	afterRestore  = "after a restore"
	inPersist     = "in the middle of a snapshot"
)

// A node is a process of the cluster.
type node struct {
	order order
	raft  *raft.Raft
	fsm   *siftraft.FSM
	stall atomic.Value // string
	runs  atomic.Bool  // raft has started

	out sync.Mutex

	mu      sync.Mutex
	applied sync.Cond
}

func runNode(text string) error {
	n := &node{}
	n.applied.L = &n.mu
	if err := json.Unmarshal([]byte(text), &n.order); err != nil {
		return err
	}
	n.stall.Store(n.order.Stall)
	if err := n.start(); err != nil {
		return err
	}
	n.runs.Store(true)
	n.say(message{Event: ready})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r request
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return err
		}
		go n.serve(r)
	}
	os.Exit(0) // the test has ended
	return nil
}

func (n *node) start() error {
	log, err := siftraft.Open(filepath.Join(n.order.Dir, "log"), &kv.Options{MemtableSize: 256 << 10})
	if err != nil {
		return err
	}
	n.fsm, err = siftraft.OpenFSM(filepath.Join(n.order.Dir, "state"),
		&siftraft.FSMOptions{Apply: record, Store: &kv.Options{MemtableSize: 256 << 10}})
	if err != nil {
		return err
	}
	snapshots, err := raft.NewFileSnapshotStore(n.order.Dir, 2, io.Discard)
	if err != nil {
		return err
	}
	transport, err := n.listen()
	if err != nil {
		return err
	}
	conf := raft.DefaultConfig()
	conf.LocalID = n.order.ID
	conf.Logger = hclog.NewNullLogger()
	conf.HeartbeatTimeout, conf.ElectionTimeout = 400*time.Millisecond, 400*time.Millisecond
	conf.LeaderLeaseTimeout, conf.CommitTimeout = 300*time.Millisecond, 5*time.Millisecond
	conf.SnapshotInterval, conf.SnapshotThreshold, conf.TrailingLogs = 200*time.Millisecond, 150, 60
	conf.NoSnapshotRestoreOnStart = n.order.Keeps
	if n.order.Keeps {
		if err := n.fsm.CatchUp(snapshots); err != nil {
			return err
		}
	}
	verified := verify(log, func(good bool, text string) {
		if good {
			n.say(message{Event: checked})
			return
		}
		n.say(message{Event: mismatch, Details: text})
	})
	if n.order.Bootstrap {
		servers := raft.Configuration{Servers: n.order.Servers}
		err := raft.BootstrapCluster(conf, verified, log, snapshots, transport, servers)
		if err != nil {
			return err
		}
	}
	n.raft, err = raft.NewRaft(conf, stallingFSM{n.fsm, n}, verified, log, snapshots, transport)
	return err
}

// listen takes the node's address, which may be somebody's connection for a moment.
func (n *node) listen() (*raft.NetworkTransport, error) {
	for {
		var address string
		for _, s := range n.order.Servers {
			if s.ID == n.order.ID {
				address = string(s.Address)
			}
		}
		transport, err := raft.NewTCPTransport(address, nil, 3, 10*time.Second, io.Discard)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return transport, err
		}
		time.Sleep(retryPause)
	}
}

func (n *node) serve(r request) {
	m := message{ID: r.ID}
	var err error
	switch {
	case r.Write != "":
		future := n.raft.Apply([]byte(r.Write), 0)
		if err = future.Error(); err == nil {
			m.Index = future.Index()
			err, _ = future.Response().(error)
		}
	case r.Applied > 0:
		n.mu.Lock()
		for n.fsm.Applied().Index < r.Applied {
			n.applied.Wait()
		}
		n.mu.Unlock()
		m.Chain, err = readChain(n.fsm, r.Applied)
	case r.Table:
		var t table
		t, err = readTable(n.fsm)
		m.Table = &t
	case r.Stall != "":
		n.stall.Store(r.Stall)
	}
	if r.Snapshot {
		if err = n.raft.Snapshot().Error(); errors.Is(err, raft.ErrNothingNewToSnapshot) {
			err = nil
		}
	}
	if err != nil {
		m.Error = err.Error()
	}
	n.say(m)
}

func (n *node) say(m message) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	n.out.Lock()
	defer n.out.Unlock()
	fmt.Printf("%s\n", line)
}

// at stops here for good if the node is to.
func (n *node) at(where string) {
	if n.runs.Load() && n.stall.Load() == where {
		n.say(message{Event: stalled})
		select {}
	}
}

// A stallingFSM is the node's FSM, which may stop on its way, and tells what it has applied.
type stallingFSM struct {
	*siftraft.FSM
	n *node
}

func (f stallingFSM) ApplyBatch(entries []*raft.Log) []any {
	responses := f.FSM.ApplyBatch(entries)
	f.tell()
	return responses
}

func (f stallingFSM) tell() {
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.n.applied.Broadcast()
}

func (f stallingFSM) Restore(from io.ReadCloser) error {
	f.n.at(beforeRestore)
	err := f.FSM.Restore(stallingReader{from, f.n})
	f.n.at(afterRestore)
	f.tell()
	return err
}

func (f stallingFSM) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.FSM.Snapshot()
	return stallingSnapshot{s, f.n}, err
}

// A stallingReader stops at the second read of a restore.
type stallingReader struct {
	io.ReadCloser
	n *node
}

func (r stallingReader) Read(b []byte) (int, error) {
	size, err := r.ReadCloser.Read(b[:min(len(b), 4096)])
	r.n.at(inRestore)
	return size, err
}

type stallingSnapshot struct {
	raft.FSMSnapshot
	n *node
}

func (s stallingSnapshot) Persist(sink raft.SnapshotSink) error {
	return s.FSMSnapshot.Persist(stallingSink{sink, s.n})
}

// A stallingSink stops when it has written something.
type stallingSink struct {
	raft.SnapshotSink
	n *node
}

func (s stallingSink) Write(b []byte) (int, error) {
	size, err := s.SnapshotSink.Write(b)
	s.n.at(inPersist)
	return size, err
}
