package node

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/messagehub/messagehub/api/identity"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// openIdentity returns the registry of actors, and the authenticator that
// verifies tokens. They are nil if the hub accepts no tokens.
func (n *Node) openIdentity(cfg *config.Config) (*actorRegistry, *identity.Authenticator) {
	if !cfg.OIDC.IsOn() {
		return nil, nil
	}
	clock := n.opts.Clock
	if clock == nil {
		clock = time.Now
	}
	actors := newActorRegistry(cfg, clock, n.opts.Logger)
	return actors, identity.New(identity.Options{
		Issuers: cfg.OIDC.Issuers, Audiences: cfg.OIDC.Audiences, Tenants: cfg.OIDC.Tenants,
		RolesClaim: cfg.OIDC.RolesClaim, ActorClaim: cfg.OIDC.ActorClaim,
		Registry: actors.current, Client: n.opts.network.issuers, Clock: clock, Logger: n.opts.Logger,
	})
}

// runIdentity refreshes the keys of the token issuers until ctx ends.
func (n *Node) runIdentity(ctx context.Context) {
	if n.senders != nil {
		n.senders.Run(ctx)
	}
}

// ReloadActors reads the registry of actors from the configuration file. If
// this fails, it logs the error, and the current registry remains valid.
func (n *Node) ReloadActors() {
	if n.actors != nil {
		n.actors.reload()
	}
}

// An actorRegistry is the registry of actors from the configuration file. It is
// read again when the file changes.
type actorRegistry struct {
	file    string   // "" if the registry is not in a file, and never changes
	issuers []string // issuers that the configuration trusts
	clock   func() time.Time
	log     *slog.Logger

	mu        sync.Mutex
	registry  *identity.Registry
	compared  time.Time // when the file was last checked for changes
	changed   time.Time // modification time of the file that was read
	size      int64     // size of the file that was read
	isFailing bool      // isFailing means that the last attempt to read the file failed
}

// compareEvery is the minimum time between two checks for changes of the file.
const compareEvery = time.Second

func newActorRegistry(cfg *config.Config, clock func() time.Time, log *slog.Logger) *actorRegistry {
	r := &actorRegistry{issuers: cfg.OIDC.Issuers, clock: clock, log: log, registry: registryOf(cfg.Actors), compared: clock()}
	if cfg.AreActorsInFile() {
		r.file = cfg.File()
		if info, err := os.Stat(r.file); err == nil {
			r.changed, r.size = info.ModTime(), info.Size()
		}
	}
	return r
}

func registryOf(clients config.Clients) *identity.Registry {
	entries := make([]identity.Entry, len(clients))
	for i, c := range clients {
		entries[i] = identity.Entry{
			Issuer: c.Issuer, Client: c.Client, Tenant: c.Tenant,
			CertificateName: c.CertificateName, CertificateSHA256: c.CertificateSHA256,
			Actor: c.Actor, Groups: c.Groups,
		}
	}
	return identity.NewRegistry(entries)
}

// current returns the current registry. It first reads the file again if it has
// changed.
func (r *actorRegistry) current() *identity.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.clock(); r.file != "" && (now.Before(r.compared) || now.Sub(r.compared) >= compareEvery) {
		r.compared = now
		r.read(false)
	}
	return r.registry
}

// reload reads the file even if it has not changed.
func (r *actorRegistry) reload() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != "" {
		r.read(true)
	}
}

// read reads the file if it has changed, or if isForced is true. The caller
// must hold r.mu.
func (r *actorRegistry) read(isForced bool) {
	clients, hasChanged, err := r.readFile(isForced)
	switch {
	case err != nil && (isForced || !r.isFailing || hasChanged): // logged only once; otherwise each request would log the error
		r.log.Warn("the registry of actors cannot be read again, so it stays as it was; repair the configuration file", "error", err)
	case err == nil && hasChanged:
		r.registry = registryOf(clients)
		r.log.Info("the registry of actors was read again", "entries", len(clients))
	}
	r.isFailing = err != nil || r.isFailing && !hasChanged
}

// readFile returns the clients in the file. It does not read the file if it is
// unchanged and isForced is false.
func (r *actorRegistry) readFile(isForced bool) (clients config.Clients, hasChanged bool, err error) {
	info, err := os.Stat(r.file)
	if err != nil {
		return nil, false, err
	}
	if hasChanged = isForced || !info.ModTime().Equal(r.changed) || info.Size() != r.size; !hasChanged {
		return nil, false, nil
	}
	r.changed, r.size = info.ModTime(), info.Size() // stored before the read, so that a file replaced during the read is read again
	text, err := os.ReadFile(r.file)
	if err != nil {
		return nil, true, err
	}
	if clients, err = config.ReadActors(r.file, text); err == nil {
		err = clients.CheckIssuers(r.issuers)
	}
	return clients, true, err
}
