package cluster

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

const retryPause = 5 * time.Millisecond // of clients that no node takes a write of

// A cluster is three nodes, of which some are dead at times, and clients that write to it.
type cluster struct {
	t      *testing.T
	orders []order
	nodes  []*process // the last process of each

	mu       sync.Mutex
	moved    sync.Cond         // something below has changed
	acked    map[uint64]string // what was acknowledged, by the index that came with it
	last     uint64            // the largest index of them
	leader   int               // the node that acknowledged the last one
	verified int               // ranges that the verifiers found to be right
	ends     bool              // clients are to end
	pauses   bool              // clients are to wait
	writing  int               // clients that write
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, acked: map[uint64]string{}}
	c.moved.L = &c.mu
	dir := t.TempDir()
	var servers []raft.Server
	for i := range 3 {
		l := listen()
		id := raft.ServerID(fmt.Sprintf("n%d", i))
		servers = append(servers, raft.Server{ID: id, Address: raft.ServerAddress(l.Addr().String())})
		defer l.Close() // the ports are different ones
	}
	for i, s := range servers {
		c.orders = append(c.orders, order{ID: s.ID, Dir: filepath.Join(dir, strconv.Itoa(i)), Servers: servers})
	}
	return c
}

// listen takes a port below those that systems give to outgoing connections: one of these must not have
// it while its node is down.
func listen() net.Listener {
	for {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(10_000+rand.IntN(20_000))))
		if err == nil {
			return l
		}
	}
}

// start starts a node; a stall says where it is to stop.
func (c *cluster) start(i int, stall string) {
	o := c.orders[i]
	o.Stall = stall
	p := startNode(c.t, o, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.verified++
		c.moved.Broadcast()
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < len(c.nodes) {
		c.nodes[i] = p
	} else {
		c.nodes = append(c.nodes, p)
	}
	c.orders[i].Bootstrap = false
	c.orders[i].Keeps = !o.Keeps // both ways to begin, in turns
}

func (c *cluster) node(i int) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// write has the cluster take an entry, whichever node it takes, and returns that; the entry may be there several times
// then.
func (c *cluster) write(data string, try int) (leader int) {
	for {
		p := c.node(try)
		m, err := p.ask(request{Write: data})
		if err == nil {
			c.acknowledge(m.Index, data, try)
			return try
		}
		time.Sleep(retryPause)
		try = (try + 1) % 3
	}
}

func (c *cluster) acknowledge(index uint64, data string, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := c.acked[index]; ok {
		c.t.Errorf("entry %d is acknowledged as %.20q and as %.20q", index, before, data)
	}
	c.acked[index], c.last, c.leader = data, max(c.last, index), by
	c.moved.Broadcast()
}

// client writes until it is to end. What it has begun then is acknowledged.
func (c *cluster) client(name string) {
	for i := 0; ; i++ {
		leader, ok := c.turn()
		if !ok {
			return
		}
		data := fmt.Sprintf("%s/%d %s", name, i, strings.Repeat("x", i%300))
		if i%20 == 19 {
			data = checkpoint
		}
		c.write(data, leader)
		c.mu.Lock()
		c.writing--
		c.moved.Broadcast()
		c.mu.Unlock()
	}
}

// turn waits until a client may write, and returns who leads; false if there is nothing more to write.
func (c *cluster) turn() (leader int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pauses && !c.ends {
		c.moved.Wait()
	}
	if !c.ends {
		c.writing++
	}
	return c.leader, !c.ends
}

// pause has clients wait, and returns when all do.
func (c *cluster) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.pauses = true; c.writing > 0; {
		c.moved.Wait()
	}
}

func (c *cluster) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pauses = false
	c.moved.Broadcast()
}

// progress waits until n more writes are acknowledged, and returns who acknowledged the last one.
func (c *cluster) progress(n int) (leader int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for from := len(c.acked); len(c.acked) < from+n; {
		c.moved.Wait()
	}
	return c.leader
}

// caughtUp waits until a node has applied what is acknowledged by now, and checks that it has applied the same up to
// there as another node.
func (c *cluster) caughtUp(i, with int) {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	m, err := c.node(i).ask(request{Applied: last})
	require.NoError(c.t, err, "node %d", i)
	other, err := c.node(with).ask(request{Applied: last})
	require.NoError(c.t, err, "node %d", with)
	require.Equal(c.t, other.Chain, m.Chain, "nodes %d and %d have applied something else up to %d", with, i, last)
}

// others returns the nodes but one.
func others(i int) []int { return []int{(i + 1) % 3, (i + 2) % 3} }

// killLeader kills the leader while it takes writes.
func (c *cluster) killLeader() {
	leader := c.progress(50)
	c.node(leader).kill()
	c.progress(50)
	c.start(leader, "")
	c.caughtUp(leader, others(leader)[0])
}

// killFollower kills a follower, for so short a time that the log has what it lacks, or not.
func (c *cluster) killFollower(writes int) {
	follower := others(c.progress(20))[0]
	c.node(follower).kill()
	c.progress(writes)
	c.start(follower, "")
	c.caughtUp(follower, others(follower)[0])
}

// killInstalling kills a follower while it takes over a snapshot in place of a log that nobody has any more. When it
// begins again, raft restores no snapshot, and another leader has what came after this one in its log.
func (c *cluster) killInstalling(where string) {
	follower := others(c.progress(20))[1]
	c.node(follower).kill()
	leader := c.progress(300)
	c.pause()
	for _, i := range others(follower) {
		_, err := c.node(i).ask(request{Snapshot: true})
		require.NoError(c.t, err)
	}
	c.orders[follower].Keeps = false
	c.start(follower, where)
	c.node(follower).await(stalled)
	c.node(follower).kill()
	for i := range 5 {
		leader = c.write(fmt.Sprintf("%s/%d", where, i), leader)
	}
	c.node(leader).kill()
	c.start(follower, "")
	c.caughtUp(follower, 3-follower-leader)
	c.start(leader, "")
	c.caughtUp(leader, follower)
	c.goOn()
}

// killPersisting kills the leader while it writes a snapshot.
func (c *cluster) killPersisting() {
	leader := c.progress(100)
	_, err := c.node(leader).ask(request{Stall: inPersist})
	require.NoError(c.t, err)
	_, err = c.node(leader).begin(request{Snapshot: true})
	require.NoError(c.t, err)
	c.node(leader).await(stalled)
	c.node(leader).kill()
	c.progress(50)
	c.start(leader, "")
	c.caughtUp(leader, others(leader)[0])
}

// killAll kills all nodes.
func (c *cluster) killAll() {
	c.progress(50)
	for i := range 3 {
		c.node(i).kill()
	}
	for i := range 3 {
		c.start(i, "")
	}
	c.progress(50)
}

// A cluster whose nodes are killed again and again loses nothing that it acknowledged, and applies every entry once, in
// the same order, on all nodes.
func TestAClusterWhoseNodesAreKilled(t *testing.T) {
	c := newCluster(t)
	for i := range 3 {
		c.orders[i].Bootstrap, c.orders[i].Keeps = true, i == 1
		c.start(i, "")
	}
	var clients sync.WaitGroup
	for i := range 6 {
		clients.Go(func() { c.client(strconv.Itoa(i)) })
	}
	c.killLeader()
	c.killFollower(10)
	c.killInstalling(beforeRestore)
	c.killLeader()
	c.killInstalling(inRestore)
	c.killPersisting()
	c.killInstalling(afterRestore)
	c.killAll()
	c.killFollower(200)
	c.killLeader()
	c.killAll()

	c.mu.Lock()
	for from := c.verified; c.verified < from+3; { // logs are compared to the end
		c.moved.Wait()
	}
	c.ends = true
	c.mu.Unlock()
	clients.Wait()
	c.write("the end", 0)
	c.requireTables()
}

// requireTables checks that all nodes have the same table, and all in it that was acknowledged.
func (c *cluster) requireTables() {
	var tables []*table
	for i := range 3 {
		c.caughtUp(i, others(i)[0])
		m, err := c.node(i).ask(request{Table: true})
		require.NoError(c.t, err)
		tables = append(tables, m.Table)
	}
	first := tables[0]
	for i, other := range tables[1:] {
		require.Equal(c.t, len(first.Rows), len(other.Rows), "node %d", i+1)
		for j, r := range first.Rows {
			require.Equal(c.t, r, other.Rows[j], "node %d", i+1)
		}
	}
	rows := map[uint64]string{}
	for _, t := range tables {
		require.EqualValues(c.t, len(t.Rows), t.Count, "each entry is applied once")
	}
	for _, r := range first.Rows {
		rows[r.Index] = r.Data
	}
	for _, index := range slices.Sorted(maps.Keys(c.acked)) {
		require.Equal(c.t, c.acked[index], rows[index], "entry %d was acknowledged", index)
	}
	c.t.Logf("%d entries, %d of them acknowledged, in %d terms; %d ranges of logs verified", len(rows), len(c.acked),
		first.Rows[len(first.Rows)-1].Term, c.verified)
}
