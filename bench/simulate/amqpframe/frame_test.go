package amqpframe_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/bench/simulate/amqpframe"
)

// FuzzFrames checks that bytes other than AMQP frames are skipped.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("AMQP\x00\x01\x00\x00\x00\x00\x00\x0d\x02\x00\x00\x00\x00\x53\x18\x45\x00"))
	f.Add([]byte{0, 0, 0, 16, 2, 0, 0, 0, 0, 0x53, 0x14, 0xc0, 3, 2, 0x43, 0x43})
	f.Fuzz(func(t *testing.T, p []byte) {
		var whole, pieces amqpframe.Deframer
		all := whole.Feed(p)
		var one []amqpframe.Frame
		for i := range p {
			one = append(one, pieces.Feed(p[i:i+1])...)
		}
		require.Equal(t, all, one)
		for i := range all {
			for position := range 20 {
				field := all[i].Field(position)
				amqpframe.Queue(field)
				amqpframe.Number(field)
				amqpframe.IsTrue(field)
			}
		}
		amqpframe.Names(p)
	})
}

func TestNames_ListsFramesAndParts(t *testing.T) {
	header := "AMQP\x00\x01\x00\x00"
	closing := "\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x18\x45"
	for chunk, want := range map[string]string{
		"":                                 "",
		header:                             "header",
		header + closing:                   "header close",
		"\x00\x00\x00\x08\x02\x00\x00\x00": "empty",
		closing[:10]:                       "a part of a frame",
		header + "AM":                      "header a part of a frame",
		strings.Replace(closing, "\x18", "\x77", 1): "frame 0x77",
	} {
		require.Equal(t, want, amqpframe.Names([]byte(chunk)), "%q", chunk)
	}
	var d amqpframe.Deframer
	found := d.Feed([]byte(header + closing))
	require.Len(t, found, 1)
	require.EqualValues(t, 0x18, found[0].Code)
}
