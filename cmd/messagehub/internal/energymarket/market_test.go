package energymarket

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarket_IsTheSameForTheSameSeed(t *testing.T) {
	a, b, c := New(500, 50, 7), New(500, 50, 7), New(500, 50, 8)
	require.Equal(t, a, b)
	require.NotEqual(t, a.Day, c.Day)
	require.NotEqual(t, a.Actors, c.Actors)
}

func TestMarket_IsADayOfADozenActors(t *testing.T) {
	m := New(20_000, 60_000, 1)
	require.Len(t, m.Actors, 12)
	require.Len(t, m.Day, 20_000)
	require.Len(t, m.Backlog, 60_000)
	gln := regexp.MustCompile(`^[0-9]{13}$`)
	seen := make(map[string]bool)
	for _, a := range m.Actors {
		require.Regexp(t, gln, a.GLN)
		require.Equal(t, NewGLN(a.GLN[:12]), a.GLN, "the check digit is right")
		require.False(t, seen[a.GLN])
		seen[a.GLN] = true
	}
	for _, e := range m.Backlog {
		require.Equal(t, m.Actors[BacklogOwner].GLN, e.Recipient)
	}

	var payloads, alone, tooHeavy int
	origins, contentTypes, ids := map[string]int{}, map[string]int{}, map[string]bool{}
	for i := range m.Day {
		e := &m.Day[i]
		require.True(t, seen[e.Recipient])
		require.False(t, ids[e.ID])
		ids[e.ID] = true
		origins[e.Origin]++
		contentTypes[e.ContentType]++
		if e.Weight == heavy {
			tooHeavy++
		}
		if !e.SupportsBundling {
			alone++
		}
		require.Equal(t, e.Origin == InlineOrigin, e.Origin == InlineOrigin && e.Payload != nil)
		if e.Payload == nil {
			continue
		}
		payloads++
		var compact bytes.Buffer
		require.NoError(t, json.Compact(&compact, e.Payload))
		require.Equal(t, compact.String(), string(e.Payload), "payloads are compact")
		require.GreaterOrEqual(t, len(e.Payload), 1<<10)
		require.LessOrEqual(t, len(e.Payload), 20<<10)
		require.LessOrEqual(t, int64(len(e.Payload)+1023)/1024, e.Weight)
		require.Equal(t, e.ID, documentID(e.Payload))
	}
	require.Len(t, origins, 5)
	require.Len(t, contentTypes, len(Kinds))
	require.InDelta(t, 2000, payloads, 300, "a tenth")
	require.Positive(t, alone)
	require.Positive(t, tooHeavy)
}

func TestMarket_TimesAreInOrder(t *testing.T) {
	g := New(0, 0, 1)
	require.Empty(t, g.Day)
	times := NewGenerator(3, 0).randomTimes(1000)
	for i := 1; i < len(times); i++ {
		require.False(t, times[i].Before(times[i-1]))
	}
	require.False(t, times[0].Before(Day))
	require.Less(t, times[999].Sub(Day), 24*time.Hour)
}

func TestNewGLN_ComputesTheCheckDigitOfTheStandard(t *testing.T) {
	for _, gln := range []string{"5790001330552", "5790000432752", "4012345000009"} {
		require.Equal(t, gln, NewGLN(gln[:12]))
	}
	require.Regexp(t, `^579[0-9]{9}$`, RandomDigits())
}
