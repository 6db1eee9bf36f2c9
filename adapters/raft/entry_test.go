package siftraft

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// goldenEntry is the record of an entry, as every version has to read it.
var goldenEntry = raft.Log{
	Index: 5, Term: 300, Type: raft.LogBarrier, Data: []byte("data"), Extensions: []byte("ext"),
	AppendedAt: time.Unix(1_700_000_000, 999_999_999).UTC(),
}

const goldenEntryRecord = "01" + "04" + "ac02" + "80c49fd50c" + "ff93ebdc03" + "03657874" + "64617461"

func TestGoldenEntry(t *testing.T) {
	require.Equal(t, goldenEntryRecord, hex.EncodeToString(appendEntry(nil, &goldenEntry)))
	record, err := hex.DecodeString(goldenEntryRecord)
	require.NoError(t, err)
	var got raft.Log
	require.NoError(t, decodeEntry(&got, 5, record))
	require.Equal(t, goldenEntry, got)
}

func TestARecordThatIsCutShortIsAnError(t *testing.T) {
	record := appendEntry(nil, &goldenEntry)
	whole := len(record) - len(goldenEntry.Data) // the data has no length: it is all that is left
	for n := range whole {
		require.ErrorIs(t, decodeEntry(new(raft.Log), 5, record[:n]), errEntry, "%d bytes", n)
	}
	require.NoError(t, decodeEntry(new(raft.Log), 5, record[:whole]))
}

func FuzzEntry(f *testing.F) {
	f.Add(appendEntry(nil, &goldenEntry))
	f.Add(appendEntry(nil, &raft.Log{}))
	f.Add([]byte{entryFormat, 0, 0x80})
	f.Fuzz(func(t *testing.T, record []byte) {
		var e, again raft.Log
		if decodeEntry(&e, 7, record) != nil {
			return
		}
		require.LessOrEqual(t, len(e.Data)+len(e.Extensions), len(record))
		require.NoError(t, decodeEntry(&again, 7, appendEntry(nil, &e)))
		require.Equal(t, e, again)
	})
}
