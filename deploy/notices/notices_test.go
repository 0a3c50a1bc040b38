package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNotices_HaveALicenceOfEachLinkedModule(t *testing.T) {
	modules, err := readModules(t.Context(), "../../cmd/messagehub", []string{runtime.GOOS})
	require.NoError(t, err)
	require.Greater(t, len(modules), 40)
	require.NoError(t, readLicences(modules))
	var b bytes.Buffer
	write(&b, modules)
	times := make(map[string]int) // by text
	for _, part := range strings.Split(b.String(), "\n"+strings.Repeat("=", 80)+"\n")[1:] {
		_, text, _ := strings.Cut(part, "\n"+strings.Repeat("-", 80)+"\n\n")
		times[strings.TrimSuffix(text, "\n")]++
	}
	for _, m := range modules {
		require.NotEmpty(t, m.licenceNames(), m.path)
		require.Contains(t, b.String(), m.path+" ")
		for _, l := range m.licences {
			require.Equal(t, 1, times[l.text], m.path)
		}
	}
}

func TestReadLicences_RefusesUnknownLicences(t *testing.T) {
	root := t.TempDir()
	file := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	file("none/a.go", "package a")
	file("own/LICENSE", "All rights reserved.")
	file("notice/NOTICE", "By us.")
	file("inner/LICENSE", "Permission is hereby granted, free of charge, to you.")
	file("inner/part/COPYING", "Redistribution and use in source and binary forms. Neither the name")
	of := func(name string, folders ...string) *module {
		m := &module{path: name, root: filepath.Join(root, name)}
		for _, folder := range append(folders, "") {
			m.folders = append(m.folders, filepath.Join(root, name, folder))
		}
		return m
	}
	require.ErrorContains(t, readLicences([]*module{of("none")}), "none has no licence")
	require.ErrorContains(t, readLicences([]*module{of("notice")}), "notice has no licence")
	require.ErrorContains(t, readLicences([]*module{of("own")}), "no known name")
	inner := of("inner", "part")
	require.NoError(t, readLicences([]*module{inner}))
	require.Equal(t, []string{"BSD-3-Clause", "MIT"}, inner.licenceNames())
}
