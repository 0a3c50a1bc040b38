package publish

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// An ObjectRelay publishes the stored changes of objects to the topic of objects, and then deletes
// the stored changes. It may publish a change more than once. The stream drops repetitions, unless
// [repository.IDRetention] passes between a crash and the next attempt.
//
// Every node runs an ObjectRelay, which publishes the changes that this node stores, in their
// order. One node at a time searches for changes that other nodes have not published.
type ObjectRelay struct {
	topic   repository.ObjectTopic
	service *Service
	opts    ObjectRelayOptions

	due chan domain.ObjectChange
}

// ObjectRelayOptions configures an ObjectRelay. The zero value is valid.
type ObjectRelayOptions struct {
	Backoff func(failures int) time.Duration // pause before the next attempt; default: about 100 ms, doubled after each failure
	Clock   func() time.Time                 // default: time.Now
	Random  func() uint64                    // source for the jitter of pauses; default: rand.Uint64
	Logger  *slog.Logger                     // default: a logger that discards all messages
}

// NewObjectRelay returns an ObjectRelay that publishes changes through service. It queues the
// changes that topic reports. It publishes nothing until Run is called.
func NewObjectRelay(topic repository.ObjectTopic, service *Service, opts ObjectRelayOptions) *ObjectRelay {
	if opts.Random == nil {
		opts.Random = rand.Uint64
	}
	if opts.Backoff == nil {
		opts.Backoff = func(failures int) time.Duration {
			d := 100 * time.Millisecond << min(failures-1, 6)
			return d - d/2 + time.Duration(opts.Random()%uint64(d)) //nolint:gosec // positive
		}
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := &ObjectRelay{topic, service, opts, make(chan domain.ObjectChange, maxDueChanges)}
	topic.Observe(r.publishSoon)
	return r
}

const (
	// maxDueChanges is the maximum number of queued changes. QueueUnpublished later finds changes
	// that do not fit.
	maxDueChanges = 10_000
	// maxAttempts is the maximum number of attempts to publish queued changes. After that, the
	// changes wait until QueueUnpublished finds them.
	maxAttempts = 5
	// minAge is the minimum age of a change that QueueUnpublished finds. The node that stored the
	// change normally publishes it earlier.
	minAge = 10 * time.Second
	// maxFound is the maximum number of changes that one call of QueueUnpublished queues.
	maxFound = 1000
)

// publishSoon queues a stored change without blocking.
func (r *ObjectRelay) publishSoon(c domain.ObjectChange) {
	select {
	case r.due <- c:
	default: // the queue is full; QueueUnpublished finds the change later
	}
}

// Run publishes queued changes until ctx ends. If a change cannot be published, it remains stored,
// and QueueUnpublished finds it later.
func (r *ObjectRelay) Run(ctx context.Context) {
	for {
		select {
		case c := <-r.due:
			r.publishUntilDone(ctx, r.gatherDue(c))
		case <-ctx.Done():
			return
		}
	}
}

// gatherDue returns first and further queued changes, up to the maximum for one append.
func (r *ObjectRelay) gatherDue(first domain.ObjectChange) []domain.ObjectChange {
	changes := []domain.ObjectChange{first}
	for len(changes) < repository.MaxAppend {
		select {
		case c := <-r.due:
			changes = append(changes, c)
		default:
			return changes
		}
	}
	return changes
}

// QueueUnpublished queues changes that were stored but not published, and reports whether it found
// any. The Relay of package watch calls it on one node at a time, after each search for other
// changes.
func (r *ObjectRelay) QueueUnpublished(ctx context.Context) bool {
	found, err := r.topic.Unpublished(ctx, r.opts.Clock().Add(-minAge), maxFound)
	if err != nil {
		r.logWarning(ctx, "look for changes", err)
	}
	for _, c := range found {
		r.publishSoon(c)
	}
	return len(found) > 0
}

func (r *ObjectRelay) publishUntilDone(ctx context.Context, changes []domain.ObjectChange) {
	for failures := 1; ; failures++ {
		err := r.Publish(ctx, changes)
		if err == nil || ctx.Err() != nil {
			return
		}
		if failures == maxAttempts || domain.KindOf(err) == domain.Damaged || domain.KindOf(err) == domain.NewerFormat {
			r.logWarning(ctx, "publish changes", err, slog.String("bucket", changes[0].Name.Bucket()), slog.Int("changes", len(changes)))
			return
		}
		timer := time.NewTimer(r.opts.Backoff(failures))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// Publish publishes up to [repository.MaxAppend] changes, and then deletes the stored changes. The
// call may be repeated. If a change was published before with different content, Publish publishes
// the remaining changes and fails with Damaged.
func (r *ObjectRelay) Publish(ctx context.Context, changes []domain.ObjectChange) error {
	type identity struct {
		name    domain.ObjectName
		version int64
	}
	seen := make(map[identity]bool, len(changes))
	var distinct []domain.ObjectChange
	var messages []domain.Message
	for i := range changes {
		c := &changes[i]
		if id := (identity{c.Name, c.Version}); !seen[id] { // QueueUnpublished may queue a change that is already queued
			seen[id] = true
			distinct, messages = append(distinct, *c), append(messages, objectMessage(c))
		}
	}
	stream := domain.ObjectsStream()
	appended, err := r.service.streams.Append(ctx, stream, messages)
	if err != nil {
		return err
	}
	r.service.appended(stream, messages, appended)
	var published []domain.ObjectChange
	for i, a := range appended {
		if a.Outcome == repository.AppendConflict {
			err = domain.Errorf(domain.Damaged, "change %d of object %q was published with other content; it is published once that is forgotten",
				distinct[i].Version, domain.Shorten(distinct[i].Name.Key()))
			continue
		}
		published = append(published, distinct[i])
	}
	if failure := r.topic.Remove(ctx, published); failure != nil {
		return failure
	}
	return err
}

func (r *ObjectRelay) logWarning(ctx context.Context, what string, err error, attrs ...slog.Attr) {
	if ctx.Err() == nil {
		r.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "changes of objects are not published for now",
			append(attrs, slog.String("what", what), slog.String("error", err.Error()))...)
	}
}
