package engine

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/messagehub/messagehub/cosmos/embedded/internal/rawjson"
)

// A Database is immutable; a change makes a new one.
type Database struct {
	ID         string
	number     uint32
	rid        string
	JSON       []byte
	containers map[string]*Container
}

// A Container is immutable; a change makes a new one.
type Container struct {
	ID       string
	Database string
	RID      string
	JSON     []byte // with its system properties
	ETag     string

	number   uint32
	ridBytes []byte
	self     string
	keyPaths []rawjson.Path
	keyText  []string
	keys     *rawjson.Extractor
	policy   *policy
}

// A record is what is stored of a database or container.
type record struct {
	Number uint32          `json:"number"`
	Parent uint32          `json:"parent,omitempty"`
	JSON   json.RawMessage `json:"json"`
}

var resourceID = regexp.MustCompile(`^[^/\\?#\x00-\x1f]{0,254}[^/\\?#\x00-\x20]$`)

func checkResourceID(what, id string) error {
	if !resourceID.MatchString(id) {
		return badRequest("%s id %q is not valid: want 1 to 255 characters without / \\ ? #, not ending in a blank", what, id)
	}
	return nil
}

// rid is a resource id as Cosmos DB shows it: base64 without slashes.
func rid(b []byte) string {
	return strings.ReplaceAll(base64.StdEncoding.EncodeToString(b), "/", "-")
}

func newDatabase(r record) (*Database, error) {
	var p struct {
		ID  string `json:"id"`
		RID string `json:"_rid"`
	}
	if err := json.Unmarshal(r.JSON, &p); err != nil {
		return nil, err
	}
	return &Database{ID: p.ID, number: r.Number, rid: p.RID, JSON: r.JSON, containers: map[string]*Container{}}, nil
}

// A definition is the part of a container's JSON that the engine acts on.
// Everything else is kept and given back.
type definition struct {
	ID           string          `json:"id"`
	PartitionKey *partitionPaths `json:"partitionKey"`
	DefaultTTL   *int64          `json:"defaultTtl"`
	Indexing     json.RawMessage `json:"indexingPolicy"`
	UniqueKeys   *struct {
		Keys []json.RawMessage `json:"uniqueKeys"`
	} `json:"uniqueKeyPolicy"`
	RID  string `json:"_rid"`
	ETag string `json:"_etag"`
	Self string `json:"_self"`
}

type partitionPaths struct {
	Paths   []string `json:"paths"`
	Kind    string   `json:"kind"`
	Version int      `json:"version"`
}

func newContainer(database string, r record) (*Container, error) {
	d, err := parseDefinition(r.JSON)
	if err != nil {
		return nil, err
	}
	c := &Container{ID: d.ID, Database: database, RID: d.RID, JSON: r.JSON, ETag: d.ETag, number: r.Number, self: d.Self}
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

// parseDefinition checks all that decides how a container behaves.
func parseDefinition(raw []byte) (*definition, error) {
	d := &definition{}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, badRequest("container: %v", err)
	}
	if err := checkResourceID("container", d.ID); err != nil {
		return nil, err
	}
	if d.DefaultTTL != nil {
		return nil, badRequest("container %q: defaultTtl is not supported: the embedded engine does not expire documents", d.ID)
	}
	if d.UniqueKeys != nil && len(d.UniqueKeys.Keys) > 0 {
		return nil, badRequest("container %q: unique keys are not supported by the embedded engine", d.ID)
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
