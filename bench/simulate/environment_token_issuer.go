package simulate

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/messagehub/messagehub/bench/simulate/random"
	"github.com/messagehub/messagehub/bench/simulate/scheduler"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
)

// The issuer of a world, and the audience of its hubs. No system has such a port.
const (
	issuerAddress = "127.0.0.1:7"
	issuerURL     = "http://" + issuerAddress
	hubAudience   = "hubs"
)

// unknownOrigin is one that no hub has a group for.
const unknownOrigin = "Weather"

const (
	tokenLife = 10 * time.Minute
	tokenUse  = 5 * time.Minute // for which a client keeps a token
	keyLead   = 3 * time.Minute // for which a key is published before it signs
)

// A tokenIssuer is the issuer of the tokens of a world. It rotates its keys, and is away for a while again and again,
// until the weather is fine. Both follow from the clock of the world, so the issuer needs no goroutine.
type tokenIssuer struct {
	sim      *simulation
	began    time.Time
	rotation time.Duration // between two keys
	period   time.Duration // at the end of each, it is away
	away     time.Duration // of each period

	mu     sync.Mutex
	keys   []jose.JSONWebKey // private; all that ever were
	held   map[string]heldToken
	served map[*hub]map[string]bool // ids of the keys of the last answer to each hub
}

// A heldToken is one that a client keeps.
type heldToken struct {
	raw, key string
	made     time.Time
}

func newTokenIssuer(sim *simulation, rng random.Source) *tokenIssuer {
	i := &tokenIssuer{sim: sim, began: time.Now(), held: make(map[string]heldToken), served: make(map[*hub]map[string]bool)}
	i.rotation = time.Duration(1+rng.IntN(10)) * time.Minute
	i.period = time.Duration(30+rng.IntN(300)) * time.Second
	i.away = i.period * time.Duration(1+rng.IntN(3)) / 4
	return i
}

// configureHub has the hubs of the world accept tokens of the issuer.
func (i *tokenIssuer) configureHub(cfg *config.Config) {
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuerURL}, []string{hubAudience}
}

// currentKey returns the number of the key that signs.
func (i *tokenIssuer) currentKey() int { return int(time.Since(i.began) / i.rotation) }

// keyNumber returns a key of the issuer. The caller holds the lock.
func (i *tokenIssuer) keyNumber(n int) jose.JSONWebKey {
	for len(i.keys) <= n {
		i.keys = append(i.keys, newSigningKey("key-"+strconv.Itoa(len(i.keys))))
	}
	return i.keys[n]
}

func newSigningKey(id string) jose.JSONWebKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return jose.JSONWebKey{Key: private, KeyID: id, Algorithm: string(jose.ES256), Use: "sig"}
}

// publishedKeys returns what the issuer publishes: the keys of tokens that have not expired, and those that sign soon.
func (i *tokenIssuer) publishedKeys() (set jose.JSONWebKeySet, ids map[string]bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Since(i.began)
	ids = make(map[string]bool)
	for n := max(0, int((now-tokenLife-i.rotation)/i.rotation)); n <= int((now+keyLead)/i.rotation); n++ {
		key := i.keyNumber(n)
		set.Keys = append(set.Keys, key.Public())
		ids[key.KeyID] = true
	}
	return set, ids
}

// currentOutage returns which of the times the issuer is away it is, and whether it is.
func (i *tokenIssuer) currentOutage() (number int, isAway bool) {
	since := time.Since(i.began)
	return int(since / i.period), !i.sim.FaultFree && since%i.period >= i.period-i.away
}

// tokenClaims are the members of a token.
type tokenClaims map[string]any

// signClaims returns a token of the current key that a hub accepts, except for other claims.
func (i *tokenIssuer) signClaims(more tokenClaims) heldToken {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	all := tokenClaims{"iss": issuerURL, "aud": hubAudience, "sub": "a-client", "nbf": now.Unix(), "exp": now.Add(tokenLife).Unix()}
	maps.Copy(all, more)
	return heldToken{signToken(i.keyNumber(i.currentKey()), all), i.keys[i.currentKey()].KeyID, now}
}

func signToken(key jose.JSONWebKey, all tokenClaims) string {
	payload, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		panic(err)
	}
	raw, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return raw
}

// tokenOf returns the token of a client, a new one if it is old. The client is the actor or, for "", a domain
// of every origin.
func (i *tokenIssuer) tokenOf(actor string) heldToken {
	i.mu.Lock()
	held, ok := i.held[actor]
	i.mu.Unlock()
	if ok && time.Since(held.made) < tokenUse {
		return held
	}
	more := tokenClaims{"roles": []string{"actor"}, "actor": actor}
	if actor == "" {
		roles := []string{"domain:" + unknownOrigin}
		for _, origin := range domain.DefaultGroups().Origins() {
			roles = append(roles, "domain:"+origin.String())
		}
		more = tokenClaims{"roles": roles}
	}
	fresh := i.signClaims(more)
	if ok && fresh.key != held.key {
		i.sim.MarkReached("an issuer signed with a new key")
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.held[actor] = fresh
	return fresh
}

// isKnown reports whether a hub has a key.
func (i *tokenIssuer) isKnown(h *hub, key string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.served[h][key]
}

// addToken gives a request to a hub the token of its sender, unless it has one. The function that it returns judges the
// answer: no token of a known key is refused, whether the issuer is away or not, and none for which the hub can get
// the key.
func (i *tokenIssuer) addToken(req *http.Request, h *hub) (judge func(*reply)) {
	if req.Header.Get("Authorization") != "" {
		return func(*reply) {}
	}
	client := req.Header.Get("X-Actor-Id")
	if req.Method == http.MethodPost {
		client = "" // it announces events
	}
	t := i.tokenOf(client)
	req.Header.Set("Authorization", "Bearer "+t.raw)
	isKnown := i.isKnown(h, t.key)
	_, isAway := i.currentOutage()
	return func(r *reply) {
		why := problemName(r.body)
		isRefused := r.status == http.StatusUnauthorized || r.status == http.StatusForbidden
		isUnavailable := r.status == http.StatusServiceUnavailable && why == " issuer-unavailable"
		switch {
		case isRefused, isUnavailable && isKnown:
			i.sim.Fail(fmt.Errorf("%s refused the token of %q with %d%s; key known: %t, issuer away: %t", h.who, client, r.status, why, isKnown, isAway))
		case isUnavailable:
			i.sim.MarkReached("a hub did not know a key, and its issuer was away")
		case isAway && isKnown:
			i.sim.MarkReached("a token of a known key counted while its issuer was away")
		}
	}
}

// dialIssuer connects a hub to the issuer when the scheduler lets it.
func (i *tokenIssuer) dialIssuer(ctx context.Context, h *hub) (net.Conn, error) {
	granted := make(chan bool, 1)
	t := &scheduler.Turn{
		Who: h.who, What: "dials its issuer",
		Proceed: func() string { granted <- true; return "goes" },
		Faults: func() []scheduler.Fault {
			return []scheduler.Fault{{Name: "cut before", Inject: func() string { granted <- false; return "refused" }}}
		},
	}
	i.sim.Enqueue(t)
	select {
	case ok := <-granted:
		if !ok {
			return nil, errRefused
		}
	case <-h.died:
		i.sim.Remove(t)
		return nil, errCut
	case <-ctx.Done():
		i.sim.Remove(t)
		return nil, ctx.Err()
	}
	number, isAway := i.currentOutage()
	if isAway && number%3 == 0 {
		return nil, errRefused
	}
	near, far := net.Pipe()
	i.sim.background.Go(func() {
		defer func() { _ = far.Close() }() // as the hub does
		if isAway && number%3 == 1 {
			i.sim.MarkReached("an issuer accepted a connection and sent nothing")
			_, _ = io.Copy(io.Discard, far)
			return
		}
		i.answerRequest(h, far, isAway)
	})
	return near, nil
}

// answerRequest answers the one request of a connection.
func (i *tokenIssuer) answerRequest(h *hub, conn net.Conn, isBroken bool) {
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	var body any = map[string]string{"issuer": issuerURL, "jwks_uri": issuerURL + "/keys"}
	var ids map[string]bool
	if req.URL.Path == "/keys" {
		body, ids = i.publishedKeys()
	}
	answer := httptest.NewRecorder()
	if isBroken {
		answer.WriteHeader(http.StatusInternalServerError)
	} else {
		_ = json.NewEncoder(answer).Encode(body) // a recorder takes all
	}
	resp := answer.Result()
	resp.Request, resp.Close = req, true
	if resp.Write(conn) != nil || isBroken || ids == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.served[h] = ids
}
