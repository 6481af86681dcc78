package auth

import "testing"

// BenchmarkVerify measures tokens whose signature has to be checked (cold) and that are
// in the cache (warm).
func BenchmarkVerify(b *testing.B) {
	v, clock := fuzzVerifier(b)
	set := v.keys.good.Load()
	for _, key := range []proxyKey{proxyRSA(), proxyEC()} {
		token := key.sign(b, goodClaims(clock, nil), nil)
		verify := func(b *testing.B) {
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(key.method.Alg()+"/cold", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				clear(set.verified)
				verify(b)
			}
		})
		b.Run(key.method.Alg()+"/warm", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				verify(b)
			}
		})
	}
	forged := otherEC().sign(b, goodClaims(clock, nil), nil)
	b.Run("forged", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(b.Context(), forged); err == nil {
				b.Fatal("a forged token passed")
			}
		}
	})
}
