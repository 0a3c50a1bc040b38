package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

const storesFile = `
objects:
  link-time: 5m
  link-limit: 20MB
  stores:
    - {bucket: "account/*", kind: azure, endpoint: "https://account.blob.core.windows.net"}
    - {bucket: "devstoreaccount1/*", kind: azure, endpoint: "http://127.0.0.1:10000/devstoreaccount1", key-file: azure.key}
    - {bucket: billing, kind: s3, endpoint: "https://s3.eu-north-1.amazonaws.com", region: eu-north-1, access-key: AKIDEXAMPLE, key-env: AWS_SECRET_ACCESS_KEY}
    - bucket: "archive-*"
      kind: s3
      endpoint: https://minio.example.org
      access-key: hub
      key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY
    - {bucket: hub, kind: folder, folder: content}
`

func TestObjectStores_AreReadWithTheirKeys(t *testing.T) {
	cfg, err := load(t, storesFile, []string{"AWS_SECRET_ACCESS_KEY=from-the-environment"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("azure.key", []byte("from-a-file\n"), 0o600))
	var got []string
	for _, s := range cfg.Objects.Stores {
		key, _, err := s.Key.Read()
		require.NoError(t, err)
		got = append(got, fmt.Sprint(s.Bucket, " ", s.Kind, " ", s.Endpoint, " ", s.Region, " ", s.AccessKey, " ", filepath.Base(s.Folder), " ", key.Reveal()))
	}
	require.Equal(t, []string{
		"account/* azure https://account.blob.core.windows.net   . ",
		"devstoreaccount1/* azure http://127.0.0.1:10000/devstoreaccount1   . from-a-file",
		"billing s3 https://s3.eu-north-1.amazonaws.com eu-north-1 AKIDEXAMPLE . from-the-environment",
		"archive-* s3 https://minio.example.org  hub . wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
		"hub folder    content ",
	}, got)
	for _, text := range []string{cfg.String(), fmt.Sprint(cfg.LogValue()), fmt.Sprintf("%v %+v %#v", cfg.Objects, cfg.Objects, cfg.Objects.Stores)} {
		require.NotContains(t, text, "wJalrXUtnFEMI")
		require.NotContains(t, text, "from-the-environment")
	}
	require.Contains(t, cfg.String(), "objects.link-time = 5m")
	require.Contains(t, cfg.String(), "objects.link-limit = 20MB")
	require.Contains(t, cfg.String(), "objects.stores = account/* (azure), devstoreaccount1/* (azure), billing (s3), archive-* (s3), hub (folder)")
}

func TestObjectStores_KeysThatAreMissingAreNamed(t *testing.T) {
	cfg, err := load(t, storesFile, nil)
	require.NoError(t, err)
	_, _, err = cfg.Objects.Stores[2].Key.Read()
	require.EqualError(t, err, "key-env: the variable AWS_SECRET_ACCESS_KEY is not set")
	_, _, err = cfg.Objects.Stores[1].Key.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile("azure.key", nil, 0o600))
	_, _, err = cfg.Objects.Stores[1].Key.Read()
	require.EqualError(t, err, "key-file: want a key alone in azure.key")
}

func TestAFileWithAKeyOfAnObjectStore_MustBePrivate(t *testing.T) {
	name := write(t, storesFile)
	require.NoError(t, os.Chmod(name, 0o644))
	cfg, err := config.Load(config.Inputs{File: name})
	require.NoError(t, err)
	require.Len(t, cfg.Warnings(), 1)
}

func TestInvalidObjectStores_AreNamedWithTheirPlace(t *testing.T) {
	const list, line = "objects.stores (hub.yaml line 1): ", "objects.stores (hub.yaml line 1): line 1: "
	const s3 = "bucket: b, kind: s3, endpoint: 'https://s3.amazonaws.com', access-key: a"
	for entry, want := range map[string]string{
		"x":                           list + "want a list such as [{bucket: 'account/*', kind: azure, endpoint: 'https://account.blob.core.windows.net', key-file: azure.key}]",
		"[x]":                         line + "want an entry such as {bucket: 'account/*', kind: azure, endpoint: 'https://account.blob.core.windows.net', key-file: azure.key}",
		"[{kind: s3}]":                line + "it has no bucket; give the name of one, or a prefix and an asterisk",
		"[{bucket: 'a*b', kind: s3}]": line + "bucket: want an asterisk at the end alone",
		"[{bucket: b, kind: gcs}]":    line + "b: kind: want s3, azure or folder",
		"[{bucket: b, kind: folder}]": line + "b: it has no folder; give its path",
		"[{bucket: b, kind: folder, endpoint: x}]":                   line + "b: endpoint: a store of kind folder has none",
		"[{bucket: b, kind: azure, region: x}]":                      line + "b: region: a store of kind azure has none",
		"[{bucket: b, knd: s3}]":                                     line + "knd: no such key; did you mean kind?",
		"[{bucket: b, kind: azure, endpoint: x}]":                    line + "b: endpoint: want the URL of the store, such as https://account.blob.core.windows.net or https://s3.eu-west-1.amazonaws.com",
		"[{bucket: b, kind: azure, endpoint: 'http://example.org'}]": line + "b: endpoint: http shows everything to everyone on the way; use https",
		"[{bucket: b, kind: azure, endpoint: 'http://127.0.0.1/a'}]": line + "b: an emulator over http needs its key; give key-file or key-env",
		"[{" + s3 + "}]":                                     line + "b: want access-key, and its secret in key-file or key-env",
		"[{" + s3 + ", key: hush, key-env: K}]":              line + "b: want one of key-file, key-env and key",
		"[{" + s3 + ", key-env: MESSAGEHUB_K}]":              line + "b: key-env: want the name of a variable that does not begin with MESSAGEHUB_, which the settings of the hub do",
		"[{" + s3 + ", key: hush}, {" + s3 + ", key: hush}]": line + "b stands in the list twice; keep one",
		"[{" + s3 + ", region: AccountKey=hush}]":            line + "region: the value holds a secret, so it is not shown; a key belongs in key-file or key-env",
	} {
		_, err := load(t, "objects: {stores: "+entry+"}", nil)
		require.EqualError(t, err, want)
		require.NotContains(t, err.Error(), "hush")
	}
	for text, want := range map[string]string{
		"link-time: 8d":   "objects.link-time = \"8d\" (hub.yaml line 1): want a time of 1s to 7d, such as 5m",
		"link-limit: big": "objects.link-limit = \"big\" (hub.yaml line 1): want a size such as 512KB, 32MB or 1048576, up to 1024GB, or auto",
	} {
		_, err := load(t, "objects: {"+text+"}", nil)
		require.EqualError(t, err, want)
	}
}
