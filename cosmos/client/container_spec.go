package client

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// A ContainerSpec describes a container that an adapter needs. The check at start, messagehub provision
// and the table in the handbook use it.
type ContainerSpec struct {
	Name         string
	Holds        string // description of the documents, for a table
	PartitionKey string // path of the partition key, which is hashed by version 2
	KeyBytes     int    // length of the longest partition key value in bytes

	// Index lists the scalar properties that queries filter or order by, without the partition key,
	// which is always indexed. All other paths are excluded, because each indexed path makes every
	// write more expensive.
	Index []IndexPath

	// Expires reports whether documents of the container set their own time to live. The container then
	// needs a default TTL of -1: documents without a time to live do not expire.
	Expires bool

	// Throughput is the suggested autoscale maximum in RU/s.
	Throughput int32

	WiderIndex string // the cost of an indexing policy that also indexes other paths
	Remedy     string // advice if the container cannot be corrected in place
}

// An IndexPath is a property that a query needs to be indexed.
type IndexPath struct {
	Path string // path as in an indexing policy, such as /name/?
	Use  string // what fails or costs more without the index

	// IsOptional reports that nodes work without the index. An index that a newer version adds is
	// missing until the operator runs messagehub provision.
	IsOptional bool
}

// DefaultTTL returns the default TTL as text for a table.
func (c *ContainerSpec) DefaultTTL() string {
	if c.Expires {
		return "-1"
	}
	return "none"
}

// keyPath returns the partition key as an index path. A policy that excludes /* also excludes the
// partition key, unless it includes the partition key by name. Without this index, Cosmos cannot
// restrict a query to its partition.
func (c *ContainerSpec) keyPath() string { return c.PartitionKey + "/?" }

// IndexPaths returns the paths to include in the indexing policy: the partition key, then the paths of
// Index.
func (c *ContainerSpec) IndexPaths() []string {
	paths := []string{c.keyPath()}
	for _, p := range c.Index {
		paths = append(paths, p.Path)
	}
	return paths
}

// IndexingPolicy returns the indexing policy as JSON.
func (c *ContainerSpec) IndexingPolicy() string {
	text, err := json.Marshal(c.Properties().IndexingPolicy)
	if err != nil {
		panic(err) // a policy without spatial indexes always marshals
	}
	return string(text)
}

// Properties returns the properties for creating the container.
func (c *ContainerSpec) Properties() azcosmos.ContainerProperties {
	index := &azcosmos.IndexingPolicy{
		Automatic:     true,
		IndexingMode:  azcosmos.IndexingModeConsistent,
		ExcludedPaths: []azcosmos.ExcludedPath{{Path: allPaths}},
	}
	for _, path := range c.IndexPaths() {
		index.IncludedPaths = append(index.IncludedPaths, azcosmos.IncludedPath{Path: path})
	}
	p := azcosmos.ContainerProperties{
		ID: c.Name,
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Kind: azcosmos.PartitionKeyKindHash, Paths: []string{c.PartitionKey}, Version: 2,
		},
		IndexingPolicy: index,
	}
	if c.Expires {
		onlyWhereSet := int32(-1)
		p.DefaultTimeToLive = &onlyWhereSet
	}
	return p
}

// allPaths matches every property in an indexing policy.
const allPaths = "/*"

// A containerState contains the properties of a container as the account returns them. It retains the
// raw JSON, because azcosmos drops unknown members.
type containerState struct {
	raw []byte

	RID          string `json:"_rid"`
	ETag         string `json:"_etag"`
	PartitionKey struct {
		Kind    string   `json:"kind"`
		Paths   []string `json:"paths"`
		Version int      `json:"version"`
	} `json:"partitionKey"`
	DefaultTTL *int64         `json:"defaultTtl"`
	Indexing   indexingPolicy `json:"indexingPolicy"`
	UniqueKeys struct {
		Keys []struct {
			Paths []string `json:"paths"`
		} `json:"uniqueKeys"`
	} `json:"uniqueKeyPolicy"`
}

type indexingPolicy struct {
	Mode      string      `json:"indexingMode"`
	Automatic *bool       `json:"automatic"`
	Included  []indexPath `json:"includedPaths"`
	Excluded  []indexPath `json:"excludedPaths"`
}

type indexPath struct {
	Path string `json:"path"`
}

// isConsistent reports whether each write updates the index synchronously. With the modes none and
// lazy, and with indexing on demand, queries fail or miss documents.
func (p *indexingPolicy) isConsistent() bool {
	return (p.Mode == "" || strings.EqualFold(p.Mode, "consistent")) && (p.Automatic == nil || *p.Automatic)
}

// isIndexed reports whether the scalar at path, such as /name/?, is indexed. The most precise path in
// the policy decides.
func (p *indexingPolicy) isIndexed(path string) bool {
	subtree := strings.TrimSuffix(path, "/?") + allPaths
	for _, candidate := range []string{path, subtree, allPaths} {
		switch {
		case namesPath(p.Excluded, candidate):
			return false
		case namesPath(p.Included, candidate):
			return true
		}
	}
	return len(p.Included) == 0 && len(p.Excluded) == 0 // a policy that names no path indexes all
}

// extraPaths returns the included paths that need does not contain.
func (p *indexingPolicy) extraPaths(need []string) []string {
	if len(p.Included) == 0 && len(p.Excluded) == 0 {
		return []string{allPaths}
	}
	var more []string
	for _, included := range p.Included {
		if path := unquotePath(included.Path); !slices.Contains(need, path) && !slices.Contains(need, strings.TrimSuffix(path, "*")+"?") {
			more = append(more, path)
		}
	}
	return more
}

func namesPath(paths []indexPath, path string) bool {
	return slices.ContainsFunc(paths, func(p indexPath) bool { return unquotePath(p.Path) == path })
}

// unquotePath returns the path without quotes. A policy may put names into quotes.
func unquotePath(path string) string { return strings.ReplaceAll(path, `"`, "") }
