package sample

import (
	"io"
	"testing"
)

func TestIfs(t *testing.T) {
	for _, err := range []error{nil, io.EOF} {
		if text, _ := Ifs(err, nil); text == "" {
			t.Error("nothing was said")
		}
	}
}
