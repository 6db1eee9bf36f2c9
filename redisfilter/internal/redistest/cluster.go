package redistest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

const (
	clusterNodeTimeout = "2000" // ms without an answer after which a node counts as failed
	slots              = 16384
)

// A Cluster is a Redis Cluster that ends with its test.
type Cluster struct {
	// Servers are the masters at first, then their replicas.
	Servers []*Server

	t testing.TB
}

// StartCluster starts masters, which share the slots evenly, and replicas of each, and waits until
// all of them see the cluster as whole and the replicas are in sync. There is no stand-in: the
// test is skipped without a redis-server.
func StartCluster(t testing.TB, masters, replicasPerMaster int) *Cluster {
	t.Helper()
	RequireReal(t)
	ctx := t.Context()
	c := &Cluster{t: t, Servers: make([]*Server, masters*(1+replicasPerMaster))}
	for i := range c.Servers {
		c.Servers[i] = Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", clusterNodeTimeout,
			"--cluster-config-file", "nodes.conf")
	}
	first := c.Servers[0]
	for i, s := range c.Servers {
		s.do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			s.do(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		}
		if i > 0 {
			s.do(ctx, "CLUSTER", "MEET", "127.0.0.1", first.port)
		}
	}
	for _, s := range c.Servers {
		s.await(ctx, "cluster of all nodes", func() bool {
			info := clusterInfo(ctx, s)
			return info["cluster_state"] == "ok" && info["cluster_known_nodes"] == strconv.Itoa(len(c.Servers))
		})
	}
	c.assignReplicas(ctx, masters)
	return c
}

func (c *Cluster) assignReplicas(ctx context.Context, masters int) {
	c.t.Helper()
	for i, s := range c.Servers[masters:] {
		master := c.Servers[i%masters].id(ctx)
		// A node that has only heard of the master knows it a moment later.
		s.await(ctx, "master to replicate", func() bool {
			return s.client.Do(ctx, "CLUSTER", "REPLICATE", master).Err() == nil
		})
	}
	replicas := len(c.Servers) - masters
	for _, s := range c.Servers[masters:] {
		s.awaitSync(ctx)
	}
	for _, s := range c.Servers {
		s.await(ctx, "view of all replicas", func() bool {
			return strings.Count(s.do(ctx, "CLUSTER", "NODES").String(), "slave ") == replicas
		})
	}
}

// Addrs returns the addresses of all servers.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		addrs[i] = s.Addr
	}
	return addrs
}

// Client returns a client of the cluster. It is closed with the test.
func (c *Cluster) Client() *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: true})
	c.t.Cleanup(func() { client.Close() })
	return client
}

// MasterOf returns the server that owns the key as the cluster's living masters see it.
func (c *Cluster) MasterOf(ctx context.Context, key string) *Server {
	c.t.Helper()
	for _, s := range c.Servers {
		if s.owns(ctx, key) {
			return s
		}
	}
	c.t.Fatalf("redistest: no living server owns the slot of %q", key)
	return nil
}

// KillMasterOf kills the server that owns the key and returns it. AwaitFailover waits for its replica to take over.
func (c *Cluster) KillMasterOf(ctx context.Context, key string) *Server {
	c.t.Helper()
	s := c.MasterOf(ctx, key)
	s.Kill()
	return s
}

// AwaitFailover waits until another living server than old owns the key, and all living servers
// agree that the cluster is whole. It returns the new owner.
func (c *Cluster) AwaitFailover(ctx context.Context, key string, old *Server) *Server {
	c.t.Helper()
	var owner *Server
	old.await(ctx, "failover", func() bool {
		owner = nil
		for _, s := range c.Servers {
			if s != old && s.owns(ctx, key) {
				owner = s
			}
		}
		return owner != nil
	})
	for _, s := range c.Servers {
		if s.alive() && s != old {
			s.await(ctx, "whole cluster", func() bool { return clusterInfo(ctx, s)["cluster_state"] == "ok" })
		}
	}
	return owner
}

// owns reports whether the server is alive, a master, and serves the key's slot.
func (s *Server) owns(ctx context.Context, key string) bool {
	if !s.alive() {
		return false
	}
	role, err := infoSection(ctx, s.client, "replication")
	if err != nil || role["role"] != "master" {
		return false
	}
	return s.client.Exists(ctx, key).Err() == nil // MOVED, CLUSTERDOWN
}

// alive reports whether the server's process has not ended.
func (s *Server) alive() bool {
	select {
	case <-s.process.done:
		return false
	default:
		return true
	}
}

func (s *Server) id(ctx context.Context) string {
	s.t.Helper()
	text, err := s.do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		s.t.Fatalf("redistest: %s: CLUSTER MYID: %v", s.Addr, err)
	}
	return text
}

func clusterInfo(ctx context.Context, s *Server) map[string]string {
	s.t.Helper()
	text, err := s.do(ctx, "CLUSTER", "INFO").Text()
	if err != nil {
		s.t.Fatalf("redistest: %s: CLUSTER INFO: %v", s.Addr, err)
	}
	return fields(text)
}
