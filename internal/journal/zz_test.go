package journal_test
import ("testing";"time";"slices";"github.com/ragpilot/ragpilot/internal/journal")
func TestZZ(t *testing.T){
 for _, size := range []int{512, 4096} {
 j:=open(t,t.TempDir(),journal.Options{MaxRecords:20000, MaxBytes: 1<<30})
 var d []time.Duration
 r:=make([]byte,size)
 for range 200000 { b:=time.Now(); if err:=j.Append(r);err!=nil{t.Fatal(err)}; d=append(d,time.Since(b))}
 slices.Sort(d)
 n:=len(d)
 t.Log(size, d[n/2], d[n*99/100], d[n*999/1000], d[n-20:], )
 }
}
