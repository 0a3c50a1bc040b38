package node

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/amqp/server"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/bus"
	"github.com/messagehub/messagehub/api/servicebus/embedded/internal/sas"
)

// A Namespace is the state that all connections share.
type Namespace struct {
	Bus    *bus.Bus
	Keys   sas.Keys
	Clock  bus.Clock
	Logger *slog.Logger

	Open        bool // Open grants all rights without a token
	TrustTokens bool // TrustTokens grants all rights for any token that is not a shared access signature, without verification
	Create      bool // Create creates an entity when a client first uses it

	// SendCredit is the link credit that a sending client receives.
	SendCredit uint32
}

var _ server.Application = (*Namespace)(nil)

// Connected implements server.Application.
func (n *Namespace) Connected(c *server.Conn) server.Peer {
	p := &peer{namespace: n, conn: c, claims: map[string]sas.Claim{}, replies: map[string]*replyLink{}, sessions: map[string]string{}}
	if c.User != "" {
		p.claims[""] = n.claimOf(c.User)
	}
	if c.User != "" || n.Open {
		c.Authorize()
	}
	return p
}

func (n *Namespace) claimOf(user string) sas.Claim {
	for _, key := range n.Keys {
		if key.Name == user {
			return sas.Claim{Rights: key.Rights}
		}
	}
	return sas.Claim{}
}

// ensureEntity creates the entity at path if it does not exist and Create is set. It calls done when the entity exists
// or could not be created.
func (n *Namespace) ensureEntity(path string, sessions bool, done func(error)) {
	base := entityOf(path)
	_, err := n.Bus.Entity(base)
	if !n.Create || !errors.Is(err, bus.ErrNotFound) || strings.HasPrefix(base, "$") {
		done(err)
		return
	}
	existing := func(err error) error {
		if errors.Is(err, bus.ErrExists) { // another connection created the entity at the same time
			return nil
		}
		return err
	}
	topic, _, isSubscription := strings.Cut(base, subscriptions)
	if !isSubscription {
		n.Bus.Create(bus.Entity{Path: base, Kind: bus.Queue, RequiresSession: sessions}, func(err error) { done(existing(err)) })
		return
	}
	n.Bus.Create(bus.Entity{Path: topic, Kind: bus.Topic}, func(err error) {
		if err = existing(err); err != nil {
			done(err)
			return
		}
		n.Bus.Create(bus.Entity{Path: base, Kind: bus.Subscription, RequiresSession: sessions}, func(err error) { done(existing(err)) })
	})
}

// The fixed parts of addresses. They are not case-sensitive.
const (
	cbs           = "$cbs"
	management    = "/$management"
	deadLetters   = "/$deadletterqueue"
	transfer      = "/$transfer"
	subscriptions = "/Subscriptions/"
)

// maxAddress limits the bytes of a link address and of a token's audience. Entity paths are much shorter.
const maxAddress = 2 << 10

// addressOf returns the path of an address, which may be a URL. It spells "Subscriptions" in the path as the bus does.
func addressOf(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		_, address, _ = strings.Cut(rest, "/")
	}
	address = strings.Trim(address, "/")
	if i := strings.Index(strings.ToLower(address), strings.ToLower(subscriptions)); i >= 0 {
		address = address[:i] + subscriptions + address[i+len(subscriptions):]
	}
	return address
}

// cutSuffix is like strings.CutSuffix, but ignores case.
func cutSuffix(s, suffix string) (string, bool) {
	if i := len(s) - len(suffix); i >= 0 && strings.EqualFold(s[i:], suffix) {
		return s[:i], true
	}
	return s, false
}

// entityOf returns the path of the entity to which path belongs, for example the queue of a dead-letter queue.
func entityOf(path string) string {
	path, _ = cutSuffix(path, management)
	path, _ = cutSuffix(path, deadLetters)
	path, _ = cutSuffix(path, transfer)
	return path
}

// A peer is the state of one connection: its rights and its links.
type peer struct {
	namespace *Namespace
	conn      *server.Conn

	replyBytes atomic.Int64 // replyBytes is the size of all replies that wait for credit

	mu       sync.Mutex
	claims   map[string]sas.Claim  // claims by path
	cbsLinks [2]int                // number of $cbs links in each direction
	replies  map[string]*replyLink // reply links by the addresses that a client may use for them
	sessions map[string]string     // session ids by the name of the link that has locked the session
}

// Disconnected implements server.Peer.
func (p *peer) Disconnected() {}

// hasRight reports whether the peer has a right on a path. A token for an entity also grants rights on its subordinate
// paths, such as its dead letters.
func (p *peer) hasRight(path string, want sas.Rights) bool {
	if p.namespace.Open {
		return true
	}
	now := p.namespace.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, claim := range p.claims {
		if claim.Covers(entityOf(path), want, now) || claim.Covers(path, want, now) {
			return true
		}
	}
	return false
}

// Attach implements server.Peer.
func (p *peer) Attach(l *server.Link) {
	var address string
	if l.PeerSends() {
		target, ok := l.Wants.Target.(*amqp.Target)
		if !ok || target == nil {
			l.Refuse(amqp.Errorf(amqp.NotImplemented, "transactions are not supported"))
			return
		}
		address = addressOf(target.Address)
	} else {
		source, ok := l.Wants.Source.(*amqp.Source)
		if !ok || source == nil {
			l.Refuse(amqp.Errorf(amqp.InvalidField, "the link has no source"))
			return
		}
		address = addressOf(source.Address)
	}
	path, isManagement := cutSuffix(address, management)
	switch {
	case len(address) > maxAddress:
		l.Refuse(amqp.Errorf(amqp.InvalidField, "an address of %d bytes; the longest is %d", len(address), maxAddress))
	case address == "":
		l.Refuse(amqp.Errorf(amqp.InvalidField, "the link has no address; name an entity"))
	case strings.EqualFold(address, cbs):
		p.attachTokens(l)
	case isManagement:
		p.attachManagement(l, path)
	case l.PeerSends():
		p.attachSender(l, address)
	default:
		p.attachReceiver(l, address)
	}
}

// requireRight reports whether the peer has one of the rights on path. If not, it refuses the link.
func (p *peer) requireRight(l *server.Link, path string, rights ...sas.Rights) bool {
	for _, want := range rights {
		if p.hasRight(path, want) {
			return true
		}
	}
	l.Refuse(unauthorizedError(path, rights[0]))
	return false
}

func unauthorizedError(path string, needed sas.Rights) *amqp.Error {
	return amqp.Errorf(amqp.UnauthorizedAccess, "Unauthorized access. '%s' claim(s) are required to perform this operation. Resource: '%s'.", needed, path)
}

func notFound(path string) *amqp.Error {
	return amqp.Errorf(amqp.NotFound, "The messaging entity '%s' could not be found.", path)
}

func parseMilliseconds(v any) (time.Duration, bool) {
	const maxDuration = 24 * time.Hour
	var ms uint64
	switch v := v.(type) {
	case uint32:
		ms = uint64(v)
	case uint64:
		ms = v
	case int32:
		ms = uint64(max(v, 0))
	case int64:
		ms = uint64(max(v, 0))
	default:
		return 0, false
	}
	return time.Duration(min(ms, uint64(maxDuration.Milliseconds()))) * time.Millisecond, true //nolint:gosec // bounded
}
