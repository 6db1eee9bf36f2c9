package redistest

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPromotedReplicaHasTheMastersKeysAndAnotherHistory(t *testing.T) {
	RequireReal(t)
	ctx := t.Context()
	master := Start(t)
	require.NoError(t, master.Client().Set(ctx, "before", "v", 0).Err())
	replica := StartReplica(t, master)
	require.NoError(t, master.Client().Set(ctx, "after", "v", 0).Err())
	master.AwaitReplicas(ctx, 1)
	history := replica.Info(ctx, "replication")["master_replid"]
	require.Equal(t, master.Info(ctx, "replication")["master_replid"], history)
	master.Kill()
	replica.Promote(ctx)
	require.NotEqual(t, history, replica.Info(ctx, "replication")["master_replid"])
	require.Equal(t, int64(2), replica.Client().Exists(ctx, "before", "after").Val())
	require.NoError(t, replica.Client().Set(ctx, "own", "v", 0).Err())
}

func TestClusterFailsOver(t *testing.T) {
	RequireReal(t)
	ctx := t.Context()
	c := StartCluster(t, 3, 1)
	client := c.Client()
	owners := map[*Server]bool{}
	for i := range 30 {
		key := fmt.Sprintf("{%d}", i)
		require.NoError(t, client.Set(ctx, key, "v", 0).Err())
		owners[c.MasterOf(ctx, key)] = true
	}
	require.Len(t, owners, 3, "the masters share the slots")
	for owner := range owners {
		owner.AwaitReplicas(ctx, 1)
	}
	sets := int64(0)
	for _, s := range c.Servers {
		sets += s.CommandCounts(ctx)["set"]
	}
	require.Equal(t, int64(30), sets/2, "each is run by a master and its replica")
	old := c.KillMasterOf(ctx, "{1}")
	owner := c.AwaitFailover(ctx, "{1}", old)
	require.NotEqual(t, old, owner)
	require.Equal(t, "v", owner.Client().Get(ctx, "{1}").Val())
	old.Restart()
	old.awaitSync(ctx)
	require.Equal(t, owner, c.MasterOf(ctx, "{1}"), "it comes back as a replica")
}
