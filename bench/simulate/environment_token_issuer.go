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

// The issuer of a simulation, and the audience of its hubs. The port is not used on real systems.
const (
	issuerAddress = "127.0.0.1:7"
	issuerURL     = "http://" + issuerAddress
	hubAudience   = "hubs"
)

// unknownOrigin is an origin without a group.
const unknownOrigin = "Weather"

const (
	tokenLife = 10 * time.Minute
	tokenUse  = 5 * time.Minute // time for which a client uses a token
	keyLead   = 3 * time.Minute // time between the publication of a key and its first use
)

// A tokenIssuer issues the tokens of a simulation. It rotates its keys, and is repeatedly unavailable until the faults
// end. Rotations and outages depend only on the simulated clock, so the issuer needs no goroutine.
type tokenIssuer struct {
	sim      *simulation
	began    time.Time
	rotation time.Duration // time between two rotations of the key
	period   time.Duration // time between two outages; the issuer is unavailable at the end of each period
	away     time.Duration // time for which the issuer is unavailable in each period

	mu     sync.Mutex
	keys   []jose.JSONWebKey // all private keys so far
	held   map[string]heldToken
	served map[*hub]map[string]bool // ids of the keys in the last response to each hub
}

// A heldToken is a token that a client uses.
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

// configureHub makes a hub accept tokens of the issuer only.
func (i *tokenIssuer) configureHub(cfg *config.Config) {
	cfg.OIDC.Issuers, cfg.OIDC.Audiences = []string{issuerURL}, []string{hubAudience}
}

// currentKey returns the number of the key with which the issuer signs now.
func (i *tokenIssuer) currentKey() int { return int(time.Since(i.began) / i.rotation) }

// keyNumber returns the n-th key of the issuer, and creates it if necessary. The caller holds the lock.
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

// publishedKeys returns the keys that the issuer publishes: the keys of unexpired tokens, and, in the time keyLead
// before its first use, the next key.
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

// currentOutage returns the number of the current period, and whether the issuer is unavailable.
func (i *tokenIssuer) currentOutage() (number int, isAway bool) {
	since := time.Since(i.began)
	return int(since / i.period), !i.sim.FaultFree && since%i.period >= i.period-i.away
}

// tokenClaims are the claims of a token.
type tokenClaims map[string]any

// signClaims returns a token signed with the current key. The claims in more replace the default claims; hubs accept
// the token unless more contains invalid claims.
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

// tokenOf returns the current token of a client. A token is replaced by a new one after tokenUse. An empty actor means
// the token of a domain with all origins.
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

// isKnown reports whether a hub has fetched a key.
func (i *tokenIssuer) isKnown(h *hub, key string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.served[h][key]
}

// addToken adds the token of the sender to a request, unless the request already has a token. The returned function
// checks the response: it fails the simulation if the hub refused the token although the hub knows the token's key or
// can fetch it.
func (i *tokenIssuer) addToken(req *http.Request, h *hub) (check func(*hubReply)) {
	if req.Header.Get("Authorization") != "" {
		return func(*hubReply) {}
	}
	client := req.Header.Get("X-Actor-Id")
	if req.Method == http.MethodPost {
		client = "" // requests that send events have the token of a domain
	}
	t := i.tokenOf(client)
	req.Header.Set("Authorization", "Bearer "+t.raw)
	isKnown := i.isKnown(h, t.key)
	_, isAway := i.currentOutage()
	return func(r *hubReply) {
		why := problemName(r.body)
		isRefused := r.status == http.StatusUnauthorized || r.status == http.StatusForbidden
		isUnavailable := r.status == http.StatusServiceUnavailable && why == " issuer-unavailable"
		switch {
		case isRefused, isUnavailable && isKnown:
			i.sim.Fail(fmt.Errorf("%s refused the token of %q with %d%s; key known: %t, issuer unavailable: %t", h.who, client, r.status, why, isKnown, isAway))
		case isUnavailable:
			i.sim.MarkReached("a hub did not know a key, and its issuer was away")
		case isAway && isKnown:
			i.sim.MarkReached("a token of a known key counted while its issuer was away")
		}
	}
}

// dialIssuer connects a hub to the issuer when the scheduler chooses the request.
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
		defer func() { _ = far.Close() }() // the hub closes its end as well
		if isAway && number%3 == 1 {
			i.sim.MarkReached("an issuer accepted a connection and sent nothing")
			_, _ = io.Copy(io.Discard, far)
			return
		}
		i.answerRequest(h, far, isAway)
	})
	return near, nil
}

// answerRequest responds to the only request of a connection.
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
		_ = json.NewEncoder(answer).Encode(body) // writing to a recorder never fails
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
