//go:build unix

package crashpoint

import (
	"os"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	p := place(os.Getenv("P"))
	s := stage(os.Getenv("S"))
	w := newWorld(p, s, 1, t.TempDir(), program(t))
	w.patience = 20 * time.Second
	began := time.Now()
	err := w.run(t.Context(), cells(p, s))
	for _, c := range cells(p, s) {
		t.Log(c, w.kills[c], w.waited[c])
	}
	events, bundles := w.ledger.counts()
	t.Log("missed", w.missed, "events", events, "bundles", bundles, "mended", w.mended, "took", time.Since(began))
	if err != nil {
		t.Fatal(err)
	}
}
