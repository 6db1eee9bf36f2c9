//go:build unix

package redisfilter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/internal/scale"
	"github.com/siftkv/siftkv/redisfilter/internal/redistest"
)

// lostKeys is how many acknowledged keys, at least, a server lacks that takes over.
const lostKeys = 50

// cutOff suspends a replica and takes from it what its master is told from then on. The replica lives
// on after Continue.
func cutOff(t testing.TB, master, replica *redistest.Server) {
	t.Helper()
	replica.Stop() // what the master has sent it still gets
	require.NoError(t, master.Client().ClientKillByFilter(t.Context(), "type", "replica").Err())
	until(t, func() bool { return replicasOf(t, master) == "0" }, "the master has lost its replica")
}

func replicasOf(t testing.TB, master *redistest.Server) string {
	return master.Info(t.Context(), "replication")["connected_slaves"]
}

// awaitLost waits until the master alone has keys that were committed after the first so many ranges,
// and ends it. It releases the processes, which had not added all keys before, however long that took.
func (s *swarm) awaitLost(set *Set, master *redistest.Server, ranges int) {
	s.t.Helper()
	ctx := s.t.Context()
	identity := master.Info(ctx, "server")["run_id"] + "/" + master.Info(ctx, "replication")["master_replid"]
	lost := 0
	s.release()
	s.await("keys that only the master has", func() bool {
		m := set.client.Watch.Map()
		for ; ranges < len(s.rows); ranges++ {
			content := set.view.Load().content
			for _, slot := range content.Slots(hashAll(content, s.rows[ranges].keys())) {
				if owner, _, ok := m.Owner(slot); ok && owner == identity {
					lost++
				}
			}
		}
		return lost >= lostKeys
	})
	require.Equal(s.t, "0", replicasOf(s.t, master), "no other server has them")
	master.Kill()
	s.t.Logf("%d acknowledged keys are lost", lost)
}

// redirect has all processes connect to another server.
func (s *swarm) redirect(addr string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order.Master = addr
	s.tell("master " + addr + "\n")
}

// awaitAnswers waits for answers.
func (s *swarm) awaitAnswers(n int) {
	s.t.Helper()
	s.mu.Lock()
	before := s.asked
	s.mu.Unlock()
	s.await(fmt.Sprint(n, " answers"), func() bool { return s.asked >= before+n })
}

// A master of a cluster is killed, and its replica takes over.
func TestASwarmOutlivesAMaster(t *testing.T) {
	t.Parallel()
	const (
		config    = "sk:{swarm}"
		partition = "sk:{swarm/3}"
	)
	type variant struct {
		name   string
		of     string // whose master ends
		behind bool   // its replica lacks keys
		load   bool   // and a load
	}
	variants := []variant{{name: "without the configuration of the last load", of: config, behind: true, load: true}}
	if scale.Long() {
		variants = append(variants, variant{name: "with all keys", of: partition},
			variant{name: "without the last keys", of: partition, behind: true})
	}
	for _, c := range variants {
		t.Run(c.name, func(t *testing.T) {
			redistest.RequireReal(t)
			ctx := t.Context()
			cluster := redistest.StartCluster(t, 3, 1)
			o := Options{Partitions: 12, Grace: time.Second}
			n := swarmKeys
			set := wholeSet(t, openClient(t, cluster.Addrs()...), "swarm", n, o)
			s := startSwarm(t, 8, order{
				Addrs: cluster.Addrs(), Set: "swarm", N: n, Parts: o.Partitions, Grace: o.Grace,
				Repairs: true, Hold: true,
			})
			s.awaitKeys(0.3)
			master := cluster.MasterOf(ctx, c.of)
			if !c.behind {
				master.Kill()
				s.release()
			} else {
				replica := cluster.Servers[3+slices.Index(cluster.Servers, master)]
				cutOff(t, master, replica)
				if c.load { // a poll in which a slow master does not answer fails it
					until(t, func() bool {
						err := set.Load(ctx, s.source)
						require.True(t, err == nil || errors.Is(err, ErrUnavailable), "%v", err)
						return err == nil
					}, "a load")
				}
				s.awaitLost(set, master, len(s.committed()))
				replica.Continue()
			}
			cluster.AwaitFailover(ctx, c.of, master)
			s.finish(openSet(t, openClient(t, cluster.Addrs()...), "swarm", n, o))
		})
	}
}

// A replica that lacks keys is promoted. Processes connect to it before it is, and read what it has.
func TestASwarmOutlivesAPromotion(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	o := Options{Grace: time.Second}
	n := swarmKeys
	c := openClient(t, master.Addr)
	set := wholeSet(t, c, "swarm", n, o)
	s := startSwarm(t, 8, order{
		Addrs: []string{master.Addr}, Master: master.Addr, Set: "swarm", N: n, Grace: o.Grace,
		Repairs: true, Hold: true,
	})
	s.awaitKeys(0.3)
	cutOff(t, master, replica)
	s.awaitLost(set, master, len(s.committed()))
	_ = c.Close() // no process redirects it
	replica.Continue()
	s.redirect(replica.Addr)
	s.awaitAnswers(1000)
	replica.Promote(context.Background())
	s.finish(openSet(t, openClient(t, replica.Addr), "swarm", n, o))
}

// A server comes back with the keys that it had some time ago.
func TestASwarmOutlivesARestartFromAnOldFile(t *testing.T) {
	t.Parallel()
	redistest.RequireReal(t)
	srv := redistest.Start(t)
	o := Options{Grace: time.Second}
	n := swarmKeys
	set := wholeSet(t, openClient(t, srv.Addr), "swarm", n, o)
	s := startSwarm(t, 8, order{
		Addrs: []string{srv.Addr}, Set: "swarm", N: n, Grace: o.Grace, Repairs: true, Hold: true,
	})
	s.awaitKeys(0.3)
	require.NoError(t, srv.Client().Save(t.Context()).Err())
	s.awaitLost(set, srv, len(s.committed()))
	srv.Restart()
	require.Positive(t, srv.Client().DBSize(t.Context()).Val(), "it has read the file")
	s.finish(openSet(t, openClient(t, srv.Addr), "swarm", n, o))
}
