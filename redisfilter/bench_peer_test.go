package redisfilter

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/siftkv/siftkv/redisfilter/internal/workload"
)

// A peer is go-zero's filter in its process; see internal/peer.
type peer struct {
	requests *json.Encoder
	answers  *json.Decoder
}

// startPeer builds the program and starts it with the bits that go-zero recommends for n keys.
func startPeer(t testing.TB, addr, key string, n int) *peer {
	t.Helper()
	program := filepath.Join(t.TempDir(), "peer")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("internal", "peer")
	build.Env = append(os.Environ(), "GOWORK=off") // no module of the workspace
	out, err := build.CombinedOutput()
	require.NoError(t, err, "build go-zero's filter, which needs its modules: %s", out)
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { endPeer(t, cmd, stdin) })
	p := &peer{json.NewEncoder(stdin), json.NewDecoder(stdout)}
	const bitsOfKey = 20 // the comment at go-zero's bloom.New
	require.NoError(t, p.requests.Encode(map[string]any{"Addr": addr, "Key": key, "Bits": bitsOfKey * n}))
	return p
}

func endPeer(t testing.TB, cmd *exec.Cmd, stdin io.Closer) {
	require.NoError(t, stdin.Close()) // it ends when its input does
	require.NoError(t, cmd.Wait())
}

func (p *peer) run(r workload.Request) (result workload.Result, err error) {
	if err = p.requests.Encode(r); err == nil {
		err = p.answers.Decode(&result)
	}
	if err == nil && result.Error != "" {
		err = errors.New(result.Error)
	}
	return result, err
}
