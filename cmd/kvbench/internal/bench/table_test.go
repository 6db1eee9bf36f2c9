package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTablesHaveOnlyKnownKeys(t *testing.T) {
	t.Parallel()
	type inner struct{ Width int }
	type row struct {
		Name  string
		inner `yaml:",inline"`
	}
	require.Equal(t, []row{{"a", inner{2}}}, Table[[]row]("rows.yaml", []byte("- {name: a, width: 2}")))
	for _, file := range []string{"- {name: a, widht: 2}", "- {name: a, name: b}", "name: a", ""} {
		func() {
			defer func() {
				err, _ := recover().(error)
				require.ErrorContains(t, err, "read rows.yaml: ", file)
			}()
			Table[[]row]("rows.yaml", []byte(file))
			require.Fail(t, "the file is read", file)
		}()
	}
}
