package kv
import ("testing";"os";"fmt";"github.com/siftkv/siftkv/internal/manifest";"github.com/siftkv/siftkv/internal/vfs";"github.com/siftkv/siftkv/internal/wal";"path/filepath")
func TestZZ(t *testing.T){
	dir,_ := damageStore(t)
	name := only(t, dir, manifest.FileManifest)
	for _, fl := range []bool{false,true} {
	if fl { rewrite(t,name,flip(60)) }
	f,_ := vfs.OS.Open(name)
	_, num := manifest.ParseFileName(filepath.Base(name))
	r := wal.NewReader(f,name,num)
	for { rec, err := r.Next(); fmt.Println(r.Offset(), len(rec), err, r.SyncedTo()); if err!=nil {break} }
	}
	fi,_ := os.Stat(name); fmt.Println(fi.Size())
}
