package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/siftkv/siftkv/cmd/kvbench/internal/bench"
	"github.com/siftkv/siftkv/internal/cli"
)

// nameDigits is how much of a hash is in a name: 48 bits.
const nameDigits = 12

// Count returns the number of generated keys that Request.Keys is, and false if it is a path. As in flags that are
// numbers, there may be underscores between digits.
func Count(text string) (int, bool) {
	if _, err := strconv.ParseInt(text, 0, 0); err == nil {
		text = strings.ReplaceAll(text, "_", "")
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// IsCount reports whether Request.Keys is a number of generated keys, and not a path.
func IsCount(text string) bool {
	_, ok := Count(text)
	return ok
}

// Name names a file of keys by what is in it, wherever it lies: the last element of its
// path, and after an @ the first digits of its SHA-256, as in words.txt@9a1bd3a5a2b4.
// Characters that some file systems or shells take for something else are replaced.
func Name(path string) (string, error) {
	sum, err := contentHash(path)
	if err != nil {
		return "", err
	}
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, filepath.Base(path))
	return plain + "@" + sum[:nameDigits], nil
}

// openLines opens a file of keys.
func openLines(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && cli.IsShortNumber(path) {
		return nil, bench.Usagef("keys: %s is no number in digits, such as 1000000, and no file", path)
	}
	if err != nil {
		return nil, bench.Usagef("keys file: %w", err)
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		_ = f.Close() // it was only looked at
		return nil, bench.Usagef("keys file %s: is a directory; give a file with one key per line", path)
	}
	return f, nil
}

// contentHash returns the SHA-256 of a file in hex. What cannot be opened or is no file
// matches bench.ErrUsage.
func contentHash(path string) (string, error) {
	f, err := openLines(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("keys file %s: %w", path, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// checkName reports a file that is not what it was when it was named.
func checkName(path, want string) error {
	name, err := Name(path)
	if err == nil && name != want {
		err = fmt.Errorf("keys file %s: %w: it was %s and is %s; run again", path, errChanged, want, name)
	}
	return err
}

var errChanged = errors.New("the file has changed meanwhile")
