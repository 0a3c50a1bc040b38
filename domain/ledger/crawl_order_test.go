package ledger_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// A hashedOrder lists long keys with equal beginnings in the order of a hash, as a repository may
// do.
type hashedOrder struct{ repository.Objects }

func orderKey(key string) string {
	if len(key) <= repository.OrderedKey {
		return key
	}
	return fmt.Sprintf("%s\x00%x", key[:repository.OrderedKey], sha256.Sum256([]byte(key)))
}

func (h *hashedOrder) List(ctx context.Context, r repository.ObjectRange, limit int) (repository.ObjectPage, error) {
	all := r
	all.After, all.UpTo = "", ""
	page, err := h.Objects.List(ctx, all, 1_000_000)
	objects := slices.DeleteFunc(page.Objects, func(o domain.Object) bool {
		at := orderKey(o.Name.Key())
		return r.After != "" && at <= orderKey(r.After) || r.UpTo != "" && at > orderKey(r.UpTo)
	})
	slices.SortFunc(objects, func(a, b domain.Object) int { return cmp.Compare(orderKey(a.Name.Key()), orderKey(b.Name.Key())) })
	if len(objects) <= limit {
		return repository.ObjectPage{Objects: objects}, err
	}
	return repository.ObjectPage{Objects: objects[:limit], More: true, After: objects[limit-1].Name.Key()}, err
}

// Some keys are longer than OrderedKey bytes. The repository orders those with the same first
// OrderedKey bytes by a hash. In some keys, the first OrderedKey bytes end within a character.
// Crawls find all differences nevertheless.
func TestCrawlIsCorrectForAnyOrderOfLongKeys(t *testing.T) {
	var keys []string
	for _, begin := range []string{
		"a", strings.Repeat("b", repository.OrderedKey-1), strings.Repeat("b", repository.OrderedKey), strings.Repeat("b", 700),
		strings.Repeat("b", repository.OrderedKey-1) + "日", "c",
	} {
		for i := range 7 {
			keys = append(keys, begin, fmt.Sprint(begin, i), fmt.Sprint(begin, "z", i))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	for _, page := range []int{1, 2, 3, 5, 1000} {
		for shift := range 4 {
			inWorld(t, func(w *world) {
				w.page = page
				w.ports.Objects = &hashedOrder{w.objects}
				var want domain.JobCounts
				for i, key := range keys {
					isKnown, isListed := (i+shift)%4 < 3, (i+shift)%4 > 0
					if isKnown {
						w.report(key, script("[C@C1]")...)
					}
					if isListed {
						w.setListed(key, repository.SourceObject{})
						want.Seen++
					}
					switch {
					case isKnown && isListed:
						want.Unchanged++
					case isKnown:
						want.Deleted++
					default:
						want.Created++
					}
				}
				require.Equal(t, want, w.completeCrawl())
				for i, key := range keys {
					require.Equal(t, (i+shift)%4 > 0, strings.HasSuffix(w.describe(key), "+"), "key %d", i)
				}
				require.Equal(t, domain.JobCounts{Seen: want.Seen, Unchanged: want.Seen}, w.completeCrawl())
			})
		}
	}
}

// A blindObjects stores events, but its stale reads return no objects.
type blindObjects struct{ repository.Objects }

func (blindObjects) List(context.Context, repository.ObjectRange, int) (repository.ObjectPage, error) {
	return repository.ObjectPage{}, nil
}

func (blindObjects) Object(context.Context, domain.ObjectName) (domain.Object, error) {
	return domain.Object{}, domain.Errorf(domain.NotFound, "not seen yet")
}

func TestCrawlPageThatIsRepeatedAfterAStaleReadAddsNoRow(t *testing.T) {
	inWorld(t, func(w *world) {
		w.setListed("a", repository.SourceObject{ObjectFacts: sized(1)})
		w.setListed("b", repository.SourceObject{ObjectFacts: sized(2)})
		dying, crash := context.WithCancel(w.Context())
		c := &crasher{Objects: w.objects, Jobs: w.jobs, n: 2, crash: crash} // crash between storing the page's events and storing its cursor
		w.ports.Objects, w.ports.Jobs = c, c
		node := w.newNode()
		job, err := node.StartCrawl(w.Context(), bucket, "")
		require.NoError(t, err)
		w.ports.Objects, w.ports.Jobs = blindObjects{w.objects}, w.jobs
		stopFirst := w.runNode(dying, node)
		<-time.After(time.Second)
		second := w.newNode()
		defer w.runNode(w.Context(), second)()
		ended := w.waitForEnd(second, job)
		stopFirst()
		require.Equal(t, domain.JobCompleted, ended.State)
		require.Equal(t, "a: C@0-01+1\nb: C@0-01+1\n", w.state(), "a delivery of the same events counts as a duplicate")
		require.Equal(t, domain.JobCounts{Seen: 2}, ended.Counts)
	})
}
