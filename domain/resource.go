package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// A Resource is a part of the hub that can be watched. It is identified by the path of its URI, as
// ParseResource returns it. Paths are compared byte by byte. A bundle is identified by its path and
// its actor, because bundles of two actors may have the same id.
type Resource struct {
	kind  ResourceKind
	path  string
	name  string  // last segment of the path
	actor ActorID // actor to which the bundle or subscription belongs; zero for other kinds
}

// A ResourceKind determines the form of a resource's path.
type ResourceKind int

// The kinds of resources that can be watched.
const (
	KeptResource         ResourceKind = iota + 1 // a document that a client stores: /v1/resources/{name}
	BundleResource                               // /v1/bundles/{id}
	SubscriptionResource                         // /v1/subscriptions/{id}
	PartyResource                                // /broker/producer/{id}, /broker/channel/{id} or /broker/channel/{id}/consumer/{id}
	ObjectResource                               // an object in an object store: /v1/objects/{id}
)

// The parts of paths that precede a name.
const (
	keptPath         = "/v1/resources/"
	bundlePath       = "/v1/bundles/"
	subscriptionPath = "/v1/subscriptions/"
	producerPath     = "/broker/producer/"
	channelPath      = "/broker/channel/"
	consumerPath     = "/consumer/" // separates a channel's name from a consumer's name
	objectPath       = "/v1/objects/"
)

// Kept returns the resource for a document that a client stores in the hub. The name may be any
// text that ParseActorID accepts, except "." and "..", which HTTP clients remove from paths.
func Kept(name string) (Resource, error) {
	if err := checkName("name of a resource", name); err != nil {
		return Resource{}, err
	}
	if name == "." || name == ".." {
		return Resource{}, Errorf(Invalid, "name of a resource: want one other than %s, which is reserved in paths", name)
	}
	return Resource{kind: KeptResource, path: keptPath + name, name: name}, nil
}

// BundleOf returns the resource for a bundle of an actor.
func BundleOf(actor ActorID, id BundleID) Resource {
	return Resource{BundleResource, bundlePath + id.String(), id.String(), actor}
}

// ParseResource returns the resource at a path, for an actor. The path must not be percent-encoded.
// Any other path is an Invalid error.
func ParseResource(path string, actor ActorID) (Resource, error) {
	if name, ok := strings.CutPrefix(path, keptPath); ok {
		return Kept(name)
	}
	if name, ok := strings.CutPrefix(path, bundlePath); ok {
		id, err := ParseBundleID(name)
		return BundleOf(actor, id), err
	}
	if name, ok := strings.CutPrefix(path, subscriptionPath); ok {
		id, err := ParseSubscriptionID(name)
		return SubscriptionResourceOf(actor, id), err
	}
	if party, ok, err := parsePartyPath(path); ok {
		return PartyOf(party), err
	}
	if name, ok := strings.CutPrefix(path, objectPath); ok {
		id, err := ParseObjectID(name)
		return ObjectResourceOf(id.Name), err
	}
	return Resource{}, Errorf(Invalid, "it cannot be watched; bundles, subscriptions, producers, channels, consumers, objects of stores and /v1/resources/{name} can")
}

// parsePartyPath returns the party at a path. isParty is false if the path does not have the form
// of a party's path.
func parsePartyPath(path string) (id PartyID, isParty bool, err error) {
	if name, ok := strings.CutPrefix(path, producerPath); ok {
		id, err = Producers.Parse(name)
		return id, true, err
	}
	name, ok := strings.CutPrefix(path, channelPath)
	if !ok {
		return id, false, nil
	}
	channel, consumer, isConsumer := strings.Cut(name, consumerPath)
	if id, err = Channels.Parse(channel); err == nil && isConsumer {
		id, err = id.Consumers().Parse(consumer)
	}
	return id, true, err
}

// SubscriptionResourceOf returns the resource for a subscription of an actor.
func SubscriptionResourceOf(owner ActorID, id SubscriptionID) Resource {
	return Resource{SubscriptionResource, subscriptionPath + id.String(), id.String(), owner}
}

// ObjectResourceOf returns the resource for an object. ParseResource returns the same resource if a
// path contains the id of one of the object's rows.
func ObjectResourceOf(name ObjectName) Resource {
	id := ObjectID{Name: name}.String()
	return Resource{kind: ObjectResource, path: objectPath + id, name: id}
}

// PartyOf returns the resource for a party of the broker.
func PartyOf(id PartyID) Resource {
	path := producerPath + id.String()
	switch {
	case id.IsConsumer():
		path = channelPath + id.Channel().String() + consumerPath + id.String()
	case id.List() == Channels:
		path = channelPath + id.String()
	}
	return Resource{kind: PartyResource, path: path, name: id.String()}
}

// keySeparator separates a path from an actor. Paths do not contain it.
const keySeparator = "#"

// Key returns the unique key by which stores find the resource: its path, followed by the actor to
// which a bundle or subscription belongs.
func (r Resource) Key() string {
	if r.actor.IsZero() {
		return r.path
	}
	return r.path + keySeparator + r.actor.String()
}

// ParseResourceKey reads the text of [Resource.Key].
func ParseResourceKey(key string) (Resource, error) {
	path, name, hasActor := strings.Cut(key, keySeparator)
	var actor ActorID
	if hasActor {
		var err error
		if actor, err = ParseActorID(name); err != nil {
			return Resource{}, err
		}
	}
	r, err := ParseResource(path, actor)
	isOfActor := r.kind == BundleResource || r.kind == SubscriptionResource
	if err == nil && (r.Key() != key || isOfActor != hasActor) {
		err = Errorf(Invalid, "resource: want a path, and the actor of a bundle or subscription, got %q", Shorten(key))
	}
	return r, err
}

// IsZero reports whether r names no resource.
func (r Resource) IsZero() bool { return r.kind == 0 }

// Kind returns the kind of r.
func (r Resource) Kind() ResourceKind { return r.kind }

// Name returns the last segment of the path.
func (r Resource) Name() string { return r.name }

// String returns the path.
func (r Resource) String() string { return r.path }

// Actor returns the actor to which a bundle or subscription belongs.
func (r Resource) Actor() ActorID { return r.actor }

// Bundle returns the id of the bundle. It returns false if r is not a bundle.
func (r Resource) Bundle() (BundleID, bool) {
	if r.kind != BundleResource {
		return BundleID{}, false
	}
	id, err := ParseBundleID(r.name)
	return id, err == nil
}

// Subscription returns the id of the subscription. It fails if r is not a subscription.
func (r Resource) Subscription() (SubscriptionID, error) { return ParseSubscriptionID(r.name) }

// Party returns the id of the party of the broker. It fails if r is not a party.
func (r Resource) Party() (PartyID, error) {
	id, isParty, err := parsePartyPath(r.path)
	if err == nil && !isParty {
		err = Errorf(Invalid, "%s is not a party of the broker", r)
	}
	return id, err
}

// Object returns the name of the object. It fails if r is not an object.
func (r Resource) Object() (ObjectName, error) {
	id, err := ParseObjectID(r.name)
	if err == nil && r.kind != ObjectResource {
		err = Errorf(Invalid, "%s is not an object of a store", r)
	}
	return id.Name, err
}

// Stream returns the stream that contains the changes of r. The entry of a change has priority 0,
// and its number is one less than the change's version.
func (r Resource) Stream() StreamName {
	sum := sha256.Sum256([]byte(r.Key()))
	return StreamName{resourceKind, hex.EncodeToString(sum[:])}
}

// A ResourceBase is the base URL of a hub's resources, such as https://hub.example.org. The zero
// ResourceBase has no URL.
type ResourceBase struct{ scheme, host, path string }

// ParseResourceBase accepts an absolute http or https URL without credentials, query or fragment.
func ParseResourceBase(text string) (ResourceBase, error) {
	if err := CheckCallbackURL(text); err != nil {
		return ResourceBase{}, err
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return ResourceBase{}, Errorf(Invalid, "want a URL")
	case u.RawQuery != "" || u.ForceQuery:
		return ResourceBase{}, Errorf(Invalid, "want no query, got %q", Shorten(text))
	case strings.Contains(u.EscapedPath(), "%"):
		return ResourceBase{}, Errorf(Invalid, "want no percent-encoding, got %q", Shorten(text))
	}
	return ResourceBase{u.Scheme, hostOf(u), strings.TrimRight(u.Path, "/")}, nil
}

// hostOf returns the host of u in lower case. The port follows, unless it is the default port of
// the scheme.
func hostOf(u *url.URL) string {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		return host
	}
	return host + ":" + port
}

// String returns the URL without a trailing slash.
func (b ResourceBase) String() string { return b.scheme + "://" + b.host + b.path }

// URI returns the URI of the given resource.
func (b ResourceBase) URI(r Resource) string { return b.String() + r.path }

// Parse returns the resource with the given URI, for an actor. The scheme and the host may be in
// upper or lower case, and the path may be percent-encoded once. For any other URI, Parse returns
// an Invalid error with the reason.
func (b ResourceBase) Parse(uri string, actor ActorID) (Resource, error) {
	if len(uri) > MaxCallbackURL {
		return Resource{}, Errorf(Invalid, "want at most %d bytes, got %d", MaxCallbackURL, len(uri))
	}
	u, err := url.Parse(uri)
	switch {
	case err != nil:
		return Resource{}, Errorf(Invalid, "want a URI")
	case !u.IsAbs() || u.Host == "":
		return Resource{}, Errorf(Invalid, "want an absolute URI below %s, got %q", b, Shorten(uri))
	case u.User != nil:
		return Resource{}, Errorf(Invalid, "want no credentials in it")
	case u.RawQuery != "" || u.ForceQuery:
		return Resource{}, Errorf(Invalid, "want no query: only a whole resource can be watched")
	case strings.Contains(uri, "#"):
		return Resource{}, Errorf(Invalid, "want no fragment: only a whole resource can be watched")
	}
	path, isBelow := strings.CutPrefix(u.Path, b.path)
	if u.Scheme != b.scheme || hostOf(u) != b.host || !isBelow || !strings.HasPrefix(path, "/") {
		return Resource{}, Errorf(Invalid, "want a resource of this hub, below %s, got %q", b, Shorten(uri))
	}
	if strings.Contains(u.Path, "%") {
		return Resource{}, Errorf(Invalid, "its path is percent-encoded twice, or has a percent sign, which no name has: %q", Shorten(uri))
	}
	if strings.Contains(strings.ToLower(u.EscapedPath()), "%2f") {
		return Resource{}, Errorf(Invalid, "want no percent-encoded slash: %q", Shorten(uri))
	}
	return ParseResource(path, actor)
}

// Contains reports whether a URL is below b. A call to such a URL would reach the hub itself.
func (b ResourceBase) Contains(text string) bool {
	u, err := url.Parse(text)
	if err != nil || b == (ResourceBase{}) {
		return false
	}
	rest, isBelow := strings.CutPrefix(u.Path, b.path)
	return hostOf(u) == b.host && isBelow && (rest == "" || rest[0] == '/')
}
