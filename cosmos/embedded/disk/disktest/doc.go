// Package disktest simulates a failing disk for tests that use package disk. It requires Linux, which has one device
// that is always full and one that cannot be synced.
package disktest
