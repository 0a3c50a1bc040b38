package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository"
	rt "github.com/messagehub/messagehub/repository/repositorytest"
)

// A shelf contains the events of an open bundle. A test decides where the payloads are stored; the shelf records how
// they are read.
type shelf struct {
	*world
	events  []repository.StoredEvent
	content domain.ContentMode

	open   func(s repository.Section) (io.ReadCloser, error) // opens a payload; if nil, the store does
	mu     sync.Mutex
	opened int
	closed int
	most   int // highest number of readers that were open at the same time
}

func newShelf(t testing.TB) *shelf {
	return &shelf{world: newWorld(t, hub.Options{}), content: domain.Inline}
}

// putObject stores an object.
func (s *shelf) putObject(name, data string) {
	s.Helper()
	require.NoError(s, s.store.Put(s.ctx, name, strings.NewReader(data)))
}

// addEvent adds an event whose payload is at the given Section. A zero Section means no payload.
func (s *shelf) addEvent(at repository.Section) {
	e := repository.StoredEvent{Event: rt.Event(s.actor), Sequence: domain.Sequence(len(s.events) + 1), PayloadAt: at}
	s.events = append(s.events, e)
}

// newPeeked returns the bundle of the shelf, as Peek would.
func (s *shelf) newPeeked() *hub.PeekedBundle {
	s.Helper()
	bundle := domain.Bundle{
		ID: rt.NewBundleID(), Group: rt.TimeSeries, Cabinet: s.events[0].Cabinet(), Count: len(s.events),
		Content: s.content, Format: domain.JSON, Version: "1.0",
	}
	s.replaceCalls(replacedStore{
		next: func(context.Context, domain.ActorID, []domain.Group) (repository.Next, error) {
			return repository.Next{Open: &bundle, Run: cannedRun{bundle, s.events}}, nil
		},
		open: s.watch,
	}, hub.Options{})
	return s.peekBundle()
}

func (s *shelf) watch(ctx context.Context, at repository.Section) (io.ReadCloser, error) {
	open := s.open
	if open == nil {
		open = func(at repository.Section) (io.ReadCloser, error) { return s.store.Open(ctx, at) }
	}
	r, err := open(at)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	s.most = max(s.most, s.opened-s.closed)
	return watchedReader{r, s}, nil
}

type watchedReader struct {
	io.ReadCloser
	shelf *shelf
}

func (r watchedReader) Close() error {
	r.shelf.mu.Lock()
	defer r.shelf.mu.Unlock()
	r.shelf.closed++
	return r.ReadCloser.Close()
}

type cannedRun struct {
	bundle domain.Bundle
	events []repository.StoredEvent
}

func (r cannedRun) Group() domain.Group        { return r.bundle.Group }
func (r cannedRun) Cabinet() domain.CabinetKey { return r.bundle.Cabinet }

func (r cannedRun) Folder() string { return "canned" }

func (r cannedRun) Saves(int, int) []domain.TraceContext { return nil }

func (r cannedRun) BacklogAfter(n int) domain.Backlog {
	return domain.Backlog{Events: int64(len(r.events) - n)}
}

func (r cannedRun) Events(context.Context) iter.Seq2[repository.StoredEvent, error] {
	return func(yield func(repository.StoredEvent, error) bool) {
		for _, e := range r.events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// inlineOf returns the body of a bundle in content mode inline.
func inlineOf(payloads ...string) string { return "[\n" + strings.Join(payloads, ",\n") + "\n]\n" }

func TestBody_FindsPayloadsInAnyObject(t *testing.T) {
	at := func(object string, offset, length int64) repository.Section {
		text := map[string]string{"a": `"0""1""2"`, "b": `"5""6"`}[object]
		return repository.Section{Object: object, Offset: offset, Length: length, Sum: repository.SumOf([]byte(text[offset : offset+length]))}
	}
	none := repository.Section{}
	for _, tc := range []struct {
		name   string
		at     []repository.Section
		want   []string
		opened int
	}{
		{"side by side", []repository.Section{at("a", 0, 3), at("a", 3, 3), at("a", 6, 3)}, []string{`"0"`, `"1"`, `"2"`}, 1},
		{"from the middle of an object on", []repository.Section{at("a", 3, 3), at("a", 6, 3)}, []string{`"1"`, `"2"`}, 1},
		{"with a gap", []repository.Section{at("a", 0, 3), at("a", 6, 3)}, []string{`"0"`, `"2"`}, 1},
		{"in several objects", []repository.Section{at("a", 6, 3), at("b", 0, 3)}, []string{`"2"`, `"5"`}, 2},
		{
			"in several objects in turns",
			[]repository.Section{at("a", 0, 3), at("b", 0, 3), at("a", 3, 3), at("b", 3, 3)},
			[]string{`"0"`, `"5"`, `"1"`, `"6"`},
			4,
		},
		{"backwards", []repository.Section{at("a", 6, 3), at("a", 3, 3), at("a", 0, 3)}, []string{`"2"`, `"1"`, `"0"`}, 3},
		{"the same twice", []repository.Section{at("a", 3, 3), at("a", 3, 3)}, []string{`"1"`, `"1"`}, 2},
		{"or nowhere", []repository.Section{none, none}, []string{"null", "null"}, 0},
		{
			"with none between",
			[]repository.Section{none, at("a", 0, 3), none, none, at("a", 3, 3), none, at("b", 0, 3), none},
			[]string{"null", `"0"`, "null", "null", `"1"`, "null", `"5"`, "null"},
			2,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShelf(t)
			s.putObject("a", `"0""1""2"`)
			s.putObject("b", `"5""6"`)
			for _, section := range tc.at {
				s.addEvent(section)
			}
			require.Equal(t, inlineOf(tc.want...), s.body(s.newPeeked()))
			require.Equal(t, tc.opened, s.opened)
			require.Equal(t, s.opened, s.closed)

			s.content = domain.Manifest
			for i, line := range s.readManifest(s.newPeeked()) {
				require.Equal(t, s.events[i].ID.String(), line.ID)
				payload := string(line.Payload)
				if s.events[i].PayloadAt.IsZero() {
					payload = "null"
				}
				require.Equal(t, tc.want[i], payload)
			}
		})
	}
}

func TestBody_IsRightForAnyMixOfPayloads(t *testing.T) {
	s := newShelf(t)
	var want []string
	objects := make([]bytes.Buffer, 5)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 2_000 {
		switch o := rng.IntN(6); {
		case o == len(objects):
			s.addEvent(repository.Section{})
			want = append(want, "null")
		default:
			payload := fmt.Sprintf(`{"n":%d,"s":%q}`, i, strings.Repeat("x", rng.IntN(300)))
			s.addEvent(repository.Section{Object: fmt.Sprint("o", o), Offset: int64(objects[o].Len()), Length: int64(len(payload)), Sum: repository.SumOf([]byte(payload))})
			objects[o].WriteString(payload)
			want = append(want, payload)
		}
	}
	for i := range objects {
		s.putObject(fmt.Sprint("o", i), objects[i].String())
	}
	require.Equal(t, inlineOf(want...), s.body(s.newPeeked()))
	require.LessOrEqual(t, s.most, 128)
	require.Equal(t, s.opened, s.closed)

	slices.Reverse(s.events)
	slices.Reverse(want)
	body := s.body(s.newPeeked())
	require.Equal(t, inlineOf(want...), body)
	require.True(t, json.Valid([]byte(body)))
}
