package redistest

import (
	"context"
	"testing"
	"time"
)

// StartReplica starts a server that replicates master and waits until it has what master held.
// There is no stand-in for it: the test is skipped without a redis-server.
func StartReplica(t testing.TB, master *Server) *Server {
	t.Helper()
	RequireReal(t)
	s := Start(t)
	s.do(t.Context(), "REPLICAOF", "127.0.0.1", master.port)
	s.awaitSync(t.Context())
	return s
}

// Promote makes a replica a master of its own.
func (s *Server) Promote(ctx context.Context) {
	s.t.Helper()
	s.do(ctx, "REPLICAOF", "NO", "ONE")
}

// AwaitReplicas waits until n replicas have what was written to the server before.
func (s *Server) AwaitReplicas(ctx context.Context, n int) {
	s.t.Helper()
	s.await(ctx, "replica with the latest writes", func() bool {
		pipe := s.client.Pipeline()
		pipe.Ping(ctx) // WAIT asks for the writes before its connection's latest command
		wait := pipe.Do(ctx, "WAIT", n, time.Second.Milliseconds())
		if _, err := pipe.Exec(ctx); err != nil {
			s.t.Fatalf("redistest: %s: WAIT: %v", s.Addr, err)
		}
		acknowledged, err := wait.Int()
		return err == nil && acknowledged >= n
	})
}

// awaitSync waits until the replica has the master's keys.
func (s *Server) awaitSync(ctx context.Context) {
	s.t.Helper()
	s.await(ctx, "replica in sync", func() bool {
		return s.Info(ctx, "replication")["master_link_status"] == "up"
	})
}

// await waits until ready returns true or ctx ends.
func (s *Server) await(ctx context.Context, what string, ready func() bool) {
	s.t.Helper()
	Await(s.t, s.Addr+": "+what, func() bool {
		if err := ctx.Err(); err != nil {
			s.t.Fatalf("redistest: %s: no %s: %v", s.Addr, what, err)
		}
		return ready()
	})
}
