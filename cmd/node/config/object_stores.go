package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
)

// An ObjectStore is an object store that the hub may read.
type ObjectStore struct {
	Bucket    string // name of a bucket, or a prefix followed by an asterisk
	Kind      string // StoreS3, StoreAzure or StoreFolder
	Endpoint  string // URL
	Account   string // Azure account; "" for the account in Endpoint
	Region    string // S3 region; "" for us-east-1
	AccessKey string // id of the S3 access key
	Key       TokenSource
	Folder    string
}

// Values of Kind.
const (
	StoreS3     = "s3"
	StoreAzure  = "azure"
	StoreFolder = "folder"
)

// storeKeys lists the keys that are valid for each kind, in addition to bucket
// and kind.
var storeKeys = map[string][]string{
	StoreS3:     {"endpoint", "region", "access-key", "key-file", "key-env", "key"},
	StoreAzure:  {"endpoint", "account", "key-file", "key-env", "key"},
	StoreFolder: {"folder"},
}

// ObjectStores lists stores in file order. For each bucket, the first matching
// store is used.
type ObjectStores []ObjectStore

// readVariables reads the keys that are stored in environment variables.
func (ss ObjectStores) readVariables(environ []string) {
	for i := range ss {
		if name := ss[i].Key.Variable; name != "" {
			ss[i].Key.Value = Secret(lookUpVariable(environ, name))
		}
	}
}

// hasKeys reports whether the configuration itself contains the key of a store.
func (ss ObjectStores) hasKeys() bool {
	return slices.ContainsFunc(ss, func(s ObjectStore) bool { return s.Key.Value != "" && s.Key.Variable == "" })
}

type storesValue ObjectStores

const storesExample = "[{bucket: 'account/*', kind: azure, endpoint: 'https://account.blob.core.windows.net', key-file: azure.key}]"

func (v *storesValue) String() string {
	names := make([]string, len(*v))
	for i, s := range *v {
		names[i] = s.Bucket + " (" + s.Kind + ")"
	}
	return strings.Join(names, ", ")
}

// Set parses a YAML list. A variable or flag contains the list in YAML's
// one-line syntax.
func (v *storesValue) Set(s string) error {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil || len(doc.Content) != 1 {
		return errors.New("want a list such as " + storesExample)
	}
	return v.decode(doc.Content[0], "")
}

// decode decodes a YAML list. Its error contains the position of every fault.
// Relative paths are relative to folder.
func (v *storesValue) decode(list *yaml.Node, folder string) error {
	if list.Kind != yaml.SequenceNode {
		return errors.New("want a list such as " + storesExample)
	}
	var stores ObjectStores
	var faults []error
	for _, item := range list.Content {
		s, err := decodeStore(resolveAlias(item), folder)
		switch {
		case err != nil:
			faults = append(faults, fmt.Errorf("line %d: %w", item.Line, err))
		case slices.ContainsFunc(stores, func(x ObjectStore) bool { return x.Bucket == s.Bucket }):
			faults = append(faults, fmt.Errorf("line %d: %s stands in the list twice; keep one", item.Line, s.Bucket))
		default:
			stores = append(stores, s)
		}
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	*v = storesValue(stores)
	return nil
}

func decodeStore(item *yaml.Node, folder string) (s ObjectStore, err error) {
	if item.Kind != yaml.MappingNode {
		return s, errors.New("want an entry such as " + strings.Trim(storesExample, "[]"))
	}
	known := []string{"bucket", "kind"}
	for _, kind := range []string{StoreS3, StoreAzure, StoreFolder} {
		known = append(known, storeKeys[kind]...)
	}
	slices.Sort(known)
	texts, err := readEntry(item, slices.Compact(known), "key")
	if err != nil {
		return s, err
	}
	s = ObjectStore{
		Bucket: texts["bucket"], Kind: texts["kind"], Endpoint: texts["endpoint"], Account: texts["account"],
		Region: texts["region"], AccessKey: texts["access-key"], Folder: texts["folder"],
	}
	allowed, isKind := storeKeys[s.Kind]
	switch {
	case s.Bucket == "":
		return s, errors.New("it has no bucket; give the name of one, or a prefix and an asterisk")
	case strings.Contains(strings.TrimSuffix(s.Bucket, "*"), "*"):
		return s, errors.New("bucket: want an asterisk at the end alone")
	case !isKind:
		return s, fmt.Errorf("%s: kind: want %s, %s or %s", s.Bucket, StoreS3, StoreAzure, StoreFolder)
	}
	for name := range texts {
		if name != "bucket" && name != "kind" && !slices.Contains(allowed, name) {
			return s, fmt.Errorf("%s: %s: a store of kind %s has none", s.Bucket, name, s.Kind)
		}
	}
	if s.Kind == StoreFolder {
		return s, s.setFolder(folder)
	}
	if s.Key, err = tokenSourceOf(texts, "key", folder); err != nil {
		return s, asKey(s.Bucket, err)
	}
	return s, asKey(s.Bucket, s.checkEndpoint())
}

func (s *ObjectStore) setFolder(folder string) error {
	if s.Folder == "" {
		return fmt.Errorf("%s: it has no folder; give its path", s.Bucket)
	}
	if !filepath.IsAbs(s.Folder) {
		s.Folder = filepath.Join(folder, s.Folder)
	}
	return nil
}

// checkEndpoint checks that Endpoint is valid for the kind of store.
func (s *ObjectStore) checkEndpoint() error {
	hasKey := s.Key.File != "" || s.Key.Variable != "" || s.Key.Value != ""
	u, err := url.Parse(s.Endpoint)
	switch {
	case err != nil, u.Host == "", u.User != nil, u.RawQuery != "", u.Scheme != "https" && u.Scheme != "http":
		return errors.New("endpoint: want the URL of the store, such as https://account.blob.core.windows.net or https://s3.eu-west-1.amazonaws.com")
	case u.Scheme == "http" && !loopback.IsDestination(u.Hostname()):
		return errors.New("endpoint: http shows everything to everyone on the way; use https")
	case s.Kind == StoreS3 && (s.AccessKey == "" || !hasKey):
		return errors.New("want access-key, and its secret in key-file or key-env")
	case s.Kind == StoreAzure && u.Scheme == "http" && !hasKey:
		return errors.New("an emulator over http needs its key; give key-file or key-env")
	}
	return nil
}
