package push

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cosmos/embedded"
	"github.com/messagehub/messagehub/cosmos/faulty"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/repositorytest"
)

// A watchedLife creates, changes and deletes a watched document, twice, and publishes each change, on a
// connection that may break. It repeats calls that fail.
type watchedLife struct {
	*testing.T
	*rig
	resource domain.Resource
	watch    *repository.Watch
	opts     Options
	next     int // step
}

// An edit is a step that changes or deletes the watched document.
type edit struct {
	body  string // new content; empty to delete the document
	event domain.ChangeEvent
}

var edits = []edit{
	{"1", ""},
	{"2", domain.ResourceUpdated},
	{"", domain.ResourceDeleted},
	{"3", ""},
	{"4", domain.ResourceUpdated},
	{"", domain.ResourceDeleted},
}

func newWatchedLife(t *testing.T, r *rig, opts Options) *watchedLife {
	resource, err := domain.Kept(repositorytest.NewActor().String())
	require.NoError(t, err)
	now := time.Now().UTC().Truncate(time.Second)
	return &watchedLife{T: t, rig: r, resource: resource, opts: opts, watch: &repository.Watch{
		ID: domain.NewWatchID(now, [10]byte{}), Owner: repositorytest.NewActor(), Resource: resource, CallbackURL: "https://example.org", Created: now,
	}}
}

func (l *watchedLife) startStore(retries int) *Store {
	opts := l.opts
	opts.Retries = retries
	return l.node(opts)
}

// runStep makes one step. A repeated step has no further effect.
func (l *watchedLife) runStep(s *Store, step int) error {
	ctx := context.Background()
	switch step {
	case 0:
		_, err := s.MarkWatched(ctx, l.resource, true)
		return err
	case 1:
		return s.CreateWatch(ctx, l.watch)
	}
	if step-2 >= 2*len(edits) {
		err := s.DeleteWatch(ctx, l.watch.Owner, l.watch.ID)
		if domain.KindOf(err) == domain.NotFound {
			return nil
		}
		return err
	}
	if step%2 == 1 {
		return l.publishChanges(s)
	}
	d := edits[(step-2)/2]
	found, err := s.Resource(ctx, l.resource)
	isMissing := domain.KindOf(err) == domain.NotFound
	switch {
	case isMissing && d.body == "":
		return nil
	case isMissing:
		found = &repository.Resource{Resource: l.resource, Changed: l.watch.Created}
	case err != nil:
		return err
	case string(found.Body) == d.body:
		return nil
	}
	if d.body == "" {
		return s.DeleteResource(ctx, l.resource, found.Version)
	}
	found.Body = []byte(d.body)
	_, err = s.PutResource(ctx, found)
	return err
}

// publishChanges appends the stored changes of the document to its stream and then removes them.
func (l *watchedLife) publishChanges(s *Store) error {
	ctx := context.Background()
	changes, err := s.Changes(ctx, l.resource)
	if err != nil {
		return err
	}
	for _, c := range changes {
		appended, err := s.Append(ctx, l.resource.Stream(), []domain.Message{c.Message()})
		if err != nil {
			return err
		}
		if appended[0].Outcome == repository.AppendGap {
			return domain.Errorf(domain.Unavailable, "a change is not visible yet")
		}
		if err := s.RemoveChange(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// runLife makes the remaining steps. again limits the number of steps that may fail. After a conflict, it
// reads the document again.
func (l *watchedLife) runLife(s *Store, again int) error {
	for tries := 0; l.next < 3+2*len(edits); tries++ {
		require.Less(l, tries, 200)
		err := l.runStep(s, l.next)
		switch kind := domain.KindOf(err); {
		case err == nil:
			l.next++
		case kind == domain.Conflict || kind == domain.NotFound && again > 0: // the read was stale
			<-time.After(time.Second)
		default:
			if again--; again < 0 {
				return err
			}
		}
	}
	return nil
}

// wantEnded requires that each change is in the stream once, and that no change document remains.
func (l *watchedLife) wantEnded(context string) {
	s := l.startStore(0)
	<-time.After(time.Minute) // after a minute, no read is stale
	require.NoError(l, l.publishChanges(s), context)
	left, err := s.Changes(l.Context(), l.resource)
	require.NoError(l, err)
	require.Empty(l, left, context)
	var got, want []string
	for from := (domain.Position{}); ; {
		found, err := s.Read(l.Context(), l.resource.Stream(), from, 100)
		require.NoError(l, err)
		if len(found.Entries) == 0 {
			break
		}
		for _, e := range found.Entries {
			c, err := domain.ChangeOf(&e.Message, e.Position.Number)
			require.NoError(l, err)
			got = append(got, fmt.Sprintf("%d %s", c.Version, c.Event))
			from = e.Position.Next()
		}
	}
	for _, d := range edits {
		if d.event != "" {
			want = append(want, fmt.Sprintf("%d %s", len(want)+1, d.event))
		}
	}
	require.Equal(l, want, got, context)
	version, err := s.MarkWatched(l.Context(), l.resource, true)
	require.NoError(l, err)
	require.EqualValues(l, len(want), version)
	_, err = s.Watch(l.Context(), l.watch.Owner, l.watch.ID)
	require.Equal(l, domain.NotFound, domain.KindOf(err))
}

var watchVariants = []variant{
	{name: "strong"},
	{name: "session account", engine: embedded.Options{Consistency: "Session"}, opts: Options{SegmentBytes: 100}},
}

func TestWatches_SurviveEveryFaultAtEachRequest(t *testing.T) {
	for _, v := range watchVariants {
		for _, fault := range append(faulty.CommonFaults(), faulty.Truncated) {
			t.Run(v.name+"/"+fault.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for n := 1; ; n++ {
						l := newWatchedLife(t, newRig(t, v.engine), v.opts)
						node := l.startStore(-1)
						l.line.BreakOne(n, fault)
						require.NoError(t, l.runLife(node, 3), "request %d", n)
						broken := l.line.Calls() >= n
						l.line.Break(nil)
						l.wantEnded(fmt.Sprintf("request %d", n))
						if !broken {
							require.Greater(t, n, 20)
							return
						}
					}
				})
			})
		}
	}
}

func TestWatches_SurviveACrashAtEachRequest(t *testing.T) {
	for _, v := range watchVariants {
		for _, last := range []faulty.Fault{faulty.RequestLost, faulty.ReplyLostAfter} {
			t.Run(v.name+"/"+last.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					for n := 1; ; n++ {
						l := newWatchedLife(t, newRig(t, v.engine), v.opts)
						node := l.startStore(-1)
						l.line.CrashAt(n, last)
						err := l.runLife(node, 0)
						crashed := l.line.Fired() > 0
						l.line.Break(nil)
						if crashed {
							require.NoError(t, l.runLife(l.startStore(0), 3), "after a crash at request %d", n)
						} else {
							require.NoError(t, err)
						}
						l.wantEnded(fmt.Sprintf("a crash at request %d", n))
						if !crashed {
							return
						}
					}
				})
			})
		}
	}
}

// The reply to a deletion is lost. Because the document is not watched, it was removed completely, so a
// retry cannot recognize that the first attempt succeeded. The deletion must still succeed.
func TestADeletionWhoseReplyIsLost_Succeeds(t *testing.T) {
	for _, v := range watchVariants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newWatchedLife(t, newRig(t, v.engine), v.opts)
				s := l.startStore(0)
				version, err := s.PutResource(t.Context(), &repository.Resource{Resource: l.resource, Body: []byte("1")})
				require.NoError(t, err)
				l.line.BreakOne(2, faulty.ReplyLostAfter) // request 1 reads the document, and request 2 deletes it
				require.NoError(t, s.DeleteResource(t.Context(), l.resource, version))
				require.Equal(t, 1, l.line.Fired())
				_, err = s.Resource(t.Context(), l.resource)
				require.Equal(t, domain.NotFound, domain.KindOf(err))
			})
		})
	}
}

// The reply to a creation is lost, and another node deletes the document before the creation is retried.
// The retry must not create the document again.
func TestACreationWhoseReplyIsLost_IsNotRepeatedAfterADeletion(t *testing.T) {
	for _, v := range watchVariants {
		t.Run(v.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newWatchedLife(t, newRig(t, v.engine), v.opts)
				s, other := l.startStore(0), New(l.account.ConnectBy(l.engine.Transport()), l.content, l.opts)
				_, err := s.MarkWatched(t.Context(), l.resource, true)
				require.NoError(t, err)
				hasWritten, isDeleted := false, false
				l.line.Break(func(_ int, req *http.Request) faulty.Fault {
					switch isWrite := req.Method == http.MethodPut; {
					case isWrite && !hasWritten:
						hasWritten = true
						return faulty.ReplyLostAfter
					case hasWritten && !isDeleted:
						isDeleted = true
						found, err := other.Resource(t.Context(), l.resource)
						require.NoError(t, err)
						require.NoError(t, other.DeleteResource(t.Context(), l.resource, found.Version))
					}
					return faulty.None
				})
				_, err = s.PutResource(t.Context(), &repository.Resource{Resource: l.resource, Body: []byte("1")})
				require.Equal(t, domain.Uncertain, domain.KindOf(err), "%v", err)
				require.True(t, isDeleted)
				_, err = other.Resource(t.Context(), l.resource)
				require.Equal(t, domain.NotFound, domain.KindOf(err))
			})
		})
	}
}

// The node that serves the cursor of a watch learns of a deletion or a new callback URL from the shard
// entry of the cursor. A call that cannot note the change in this entry fails, and a repeated call notes
// it.
func TestAChangeOfAWatchThatIsNotNoted_Fails(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func(s *Store, w *repository.Watch) error
		then domain.Kind // expected kind of the error of the repeated call
	}{
		{"delete", func(s *Store, w *repository.Watch) error { return s.DeleteWatch(context.Background(), w.Owner, w.ID) }, domain.NotFound},
		{"replace", func(s *Store, w *repository.Watch) error {
			found, err := s.Watch(context.Background(), w.Owner, w.ID)
			if err != nil {
				return err
			}
			found.CallbackURL = "https://example.org/other"
			return s.ReplaceWatch(context.Background(), found)
		}, domain.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newWatchedLife(t, newRig(t, embedded.Options{}), Options{})
				s, cursor := l.startStore(0), l.watch.ID.Cursor(l.watch.Owner)
				require.NoError(t, s.CreateWatch(t.Context(), l.watch))
				require.NoError(t, s.Create(t.Context(), cursor, domain.Standing{Stream: l.resource.Stream()}))
				c, version, err := s.Load(t.Context(), cursor, domain.Owner{Incarnation: "a", Limit: 1}, time.Now)
				require.NoError(t, err)
				c.List(time.Now())
				_, err = s.Settle(t.Context(), cursor, version, c.Settlement())
				require.NoError(t, err)
				changes := func() int64 {
					entries, _, err := s.Cursors(t.Context(), repository.ShardOf(cursor))
					require.NoError(t, err)
					require.Len(t, entries, 1)
					return entries[0].Changes
				}
				before := changes()
				l.line.Break(func(_ int, req *http.Request) faulty.Fault {
					if req.Method == http.MethodPatch {
						return faulty.Unavailable
					}
					return faulty.None
				})
				require.Error(t, tc.call(s, l.watch))
				l.line.Break(nil)
				require.Equal(t, before, changes())
				if err := tc.call(s, l.watch); tc.then != domain.Unknown {
					require.Equal(t, tc.then, domain.KindOf(err), "%v", err)
				} else {
					require.NoError(t, err)
				}
				require.Greater(t, changes(), before)
			})
		})
	}
}
