package engine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A Database is immutable; a change creates a new one.
type Database struct {
	ID         string
	number     uint32
	rid        string
	etag       string
	JSON       []byte
	offer      *Offer // nil unless the containers share a throughput
	containers map[string]*Container
}

// A Container is immutable; a change creates a new one.
type Container struct {
	ID       string
	Database string
	RID      string
	JSON     []byte // JSON with the system properties
	ETag     string

	number   uint32
	parent   uint32 // number of the database
	ridBytes []byte
	self     string
	keyPaths []rawjson.Path
	keyText  []string
	keys     *rawjson.Extractor
	policy   *policy
	ttl      *int32      // seconds until documents expire, -1 for never; nil: no document expires, even with a ttl
	unique   []uniqueKey // unique keys besides the id

	hierarchical bool // the components of a key are hashed separately
	keyVersion   int  // version of the hash

	clock func() time.Time // clock of conditions that use the current time

	offer     *Offer // nil if the container has no throughput of its own
	ranges    []Range
	nextRange int // the lowest unused range id
}

// A resourceRecord is a database or container as it is stored.
type resourceRecord struct {
	Number uint32          `json:"number"`
	Parent uint32          `json:"parent,omitempty"`
	JSON   json.RawMessage `json:"json"`

	Offer     *Offer  `json:"offer,omitempty"`
	Ranges    []Range `json:"ranges,omitempty"`
	NextRange int     `json:"nextRange,omitempty"`
}

func (db *Database) toRecord() resourceRecord {
	return resourceRecord{Number: db.number, JSON: db.JSON, Offer: db.offer}
}

func (c *Container) toRecord() resourceRecord {
	return resourceRecord{Number: c.number, Parent: c.parent, JSON: c.JSON, Offer: c.offer, Ranges: c.ranges, NextRange: c.nextRange}
}

var resourceID = regexp.MustCompile(`^[^/\\?#\x00-\x1f]{0,254}[^/\\?#\x00-\x20]$`)

func checkResourceID(what, id string) error {
	if !resourceID.MatchString(id) {
		return badRequest("%s id %q is not valid: want 1 to 255 characters without / \\ ? #, not ending in a blank", what, id)
	}
	return nil
}

// formatRID formats a resource id as Cosmos DB does: base64 without slashes.
func formatRID(b []byte) string {
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", "-")
}

func parseRID(text string) ([]byte, error) {
	return base64.StdEncoding.DecodeString(strings.ReplaceAll(text, "-", "/"))
}

// RID returns the resource id of the database.
func (db *Database) RID() string { return db.rid }

func newDatabase(r resourceRecord) (*Database, error) {
	var p struct {
		ID   string `json:"id"`
		RID  string `json:"_rid"`
		ETag string `json:"_etag"`
	}
	if err := json.Unmarshal(r.JSON, &p); err != nil {
		return nil, err
	}
	return &Database{ID: p.ID, number: r.Number, rid: p.RID, etag: p.ETag, JSON: r.JSON, offer: r.Offer, containers: map[string]*Container{}}, nil
}

// A definition is the part of a container's JSON that the engine interprets. The remaining members are stored and
// returned unchanged.
type definition struct {
	ID           string          `json:"id"`
	PartitionKey *partitionPaths `json:"partitionKey"`
	DefaultTTL   *json.Number    `json:"defaultTtl"`
	Indexing     json.RawMessage `json:"indexingPolicy"`
	UniqueKeys   *uniquePolicy   `json:"uniqueKeyPolicy"`
	RID          string          `json:"_rid"`
	ETag         string          `json:"_etag"`
	Self         string          `json:"_self"`
}

type partitionPaths struct {
	Paths   []string `json:"paths"`
	Kind    string   `json:"kind"`
	Version int      `json:"version"`
}

// defaultHashVersion is the hash version of a new container if the request has no version. It is not
// 1, because azcosmos and other clients compute version 1 in different ways.
const defaultHashVersion = 2

// hashVersion returns the version of the hash. A key with several paths always has version 2.
func (p *partitionPaths) hashVersion() int {
	if p.Version == 2 || len(p.Paths) > 1 {
		return 2
	}
	return 1
}

func (e *Engine) newContainer(database string, r resourceRecord) (*Container, error) {
	d, err := parseDefinition(r.JSON)
	if err != nil {
		return nil, err
	}
	c := &Container{
		ID: d.ID, Database: database, RID: d.RID, JSON: r.JSON, ETag: d.ETag, number: r.Number, parent: r.Parent, self: d.Self,
		hierarchical: len(d.PartitionKey.Paths) > 1, keyVersion: d.PartitionKey.hashVersion(), clock: e.clock,
		offer: r.Offer, ranges: r.Ranges, nextRange: r.NextRange,
	}
	if c.ttl, err = parseDefaultTTL(d.DefaultTTL); err != nil {
		return nil, err
	}
	if c.unique, err = d.UniqueKeys.parseKeys(); err != nil {
		return nil, err
	}
	c.ridBytes = containerRID(r.Parent, r.Number)
	for _, text := range d.PartitionKey.Paths {
		path, err := splitPath(text)
		if err != nil {
			return nil, err
		}
		c.keyText = append(c.keyText, text)
		c.keyPaths = append(c.keyPaths, path)
	}
	c.keys = rawjson.NewExtractor(c.keyPaths)
	c.policy, err = parsePolicy(d.Indexing)
	return c, err
}

func containerRID(database, container uint32) []byte {
	b := binary.BigEndian.AppendUint32(nil, database)
	return binary.BigEndian.AppendUint32(b, container|1<<31)
}

// parseDefinition parses and checks the settings that the engine interprets.
func parseDefinition(raw []byte) (*definition, error) {
	d := &definition{}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, badRequest("container: %v", err)
	}
	if err := checkResourceID("container", d.ID); err != nil {
		return nil, err
	}
	if _, err := parseDefaultTTL(d.DefaultTTL); err != nil {
		return nil, err
	}
	if _, err := d.UniqueKeys.parseKeys(); err != nil {
		return nil, err
	}
	if d.PartitionKey == nil || len(d.PartitionKey.Paths) == 0 || len(d.PartitionKey.Paths) > 3 {
		return nil, badRequest("container %q: partitionKey wants 1 to 3 paths", d.ID)
	}
	if len(d.PartitionKey.Paths) > 1 && d.PartitionKey.Kind != "MultiHash" {
		return nil, badRequest("container %q: several partition key paths need kind MultiHash", d.ID)
	}
	for _, path := range d.PartitionKey.Paths {
		steps, err := splitPath(path)
		if err != nil {
			return nil, err
		}
		if len(steps) == 0 || strings.ContainsAny(path, "*?[]") {
			return nil, badRequest("container %q: partition key path %q is not valid", d.ID, path)
		}
	}
	if len(d.Indexing) == 0 || string(d.Indexing) == "null" {
		d.Indexing = json.RawMessage(defaultPolicy)
	}
	_, err := parsePolicy(d.Indexing)
	return d, err
}

// checkNew refuses settings that only containers of earlier versions may have: a null TTL, a TTL without an index (with
// which Cosmos DB finds expired documents), and computed properties.
func (d *definition) checkNew(body []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return badRequest("container: %v", err)
	}
	if string(all["defaultTtl"]) == "null" {
		return badRequest("container %q: defaultTtl is null; want a number of seconds, or -1, or leave it out", d.ID)
	}
	if text := string(all["computedProperties"]); text != "" && text != "null" && text != "[]" {
		return badRequest("container %q: computedProperties are not supported by the embedded engine", d.ID)
	}
	p, err := parsePolicy(d.Indexing)
	if err == nil && p.none && d.DefaultTTL != nil {
		return badRequest("container %q: defaultTtl needs an index, which indexingMode none excludes", d.ID)
	}
	return err
}
