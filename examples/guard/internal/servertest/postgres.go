package servertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// Postgres starts a PostgreSQL server with an empty database, on a Unix socket, and
// returns how to connect to it, or "". Started by root, it runs as the user
// postgres, as PostgreSQL refuses root.
func Postgres(t *testing.T) string {
	t.Helper()
	initdb, server := postgresProgram("initdb"), postgresProgram("postgres")
	if initdb == "" || server == "" {
		missing(t, "PostgreSQL", "SIFTKV_POSTGRES", "SQLite")
		return ""
	}
	dir, err := os.MkdirTemp("", "pg") //nolint:usetesting // t.TempDir is closed to other users, and long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	attributes := attributes()
	require.NoError(t, unprivileged(attributes, dir))

	data := filepath.Join(dir, "data")
	cmd := exec.Command(initdb, "-D", data, "-U", "guard", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", initdb, output)

	cmd = exec.Command(server, "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	cmd.Dir, cmd.SysProcAttr = dir, attributes
	connect := fmt.Sprintf("host=%s user=guard dbname=postgres", dir)
	launch(t, cmd, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, connect)
		if err != nil {
			return err
		}
		return conn.Close(ctx)
	})
	return connect
}

// postgresProgram returns the path of a program of PostgreSQL, or "". Debian keeps
// them out of the search path.
func postgresProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	paths, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(paths) == 0 {
		return ""
	}
	return paths[len(paths)-1]
}
