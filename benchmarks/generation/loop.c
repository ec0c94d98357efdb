/* Greedy or sampled generation by a small GPT, one token at a time, with a cache of keys and values. */
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t tokens, context, width, heads, layers;
} Shape;

static void product(float *restrict y, const float *restrict w, const float *restrict b, const float *restrict x, int64_t n, int64_t k)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float s[8] = {0};
        const float *r = w + i * k;
#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            float t = 0;
            for (int64_t l = 0; l < k; l++) t += r[j * k + l] * x[l];
            s[j] = t;
        }
        for (int j = 0; j < 8; j++) y[i + j] = s[j] + (b ? b[i + j] : 0);
    }
    for (; i < n; i++) {
        float t = 0;
        for (int64_t l = 0; l < k; l++) t += w[i * k + l] * x[l];
        y[i] = t + (b ? b[i] : 0);
    }
}

static void norm(float *restrict y, const float *restrict x, const float *w, const float *b, int64_t n)
{
    float mean = 0, var = 0;
    for (int64_t i = 0; i < n; i++) mean += x[i];
    mean /= n;
    for (int64_t i = 0; i < n; i++) var += (x[i] - mean) * (x[i] - mean);
    float r = 1 / sqrtf(var / n + 1e-5f);
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * r * w[i] + b[i];
}
/* weights in the order of named_parameters; p walks along them */
static const float *take(const float **p, int64_t n) { const float *r = *p; *p += n; return r; }

void generate(const float *weights, const Shape *s, float *cache, int64_t *text, int64_t known, int64_t wanted, double temperature, const double *chances)
{
    int64_t W = s->width, H = s->heads, C = s->context, D = W / H;
    float x[W], h[W], q[3 * W], u[4 * W], score[C], mixed[W], logits[s->tokens];
    for (int64_t pos = 0; pos + 1 < wanted; pos++) {
        const float *p = weights;
        const float *emb = take(&p, s->tokens * W), *places = take(&p, C * W);
        for (int64_t i = 0; i < W; i++) x[i] = emb[text[pos] * W + i] + places[pos * W + i];
        for (int64_t l = 0; l < s->layers; l++) {
            const float *n1w = take(&p, W), *n1b = take(&p, W), *qw = take(&p, 3 * W * W), *qb = take(&p, 3 * W), *ow = take(&p, W * W), *ob = take(&p, W);
            const float *n2w = take(&p, W), *n2b = take(&p, W), *uw = take(&p, 4 * W * W), *ub = take(&p, 4 * W), *dw = take(&p, 4 * W * W), *db = take(&p, W);
            float *keys = cache + l * 2 * C * W, *values = keys + C * W;
            norm(h, x, n1w, n1b, W);
            product(q, qw, qb, h, 3 * W, W);
            memcpy(keys + pos * W, q + W, W * sizeof(float));
            memcpy(values + pos * W, q + 2 * W, W * sizeof(float));
            for (int64_t a = 0; a < H; a++) {
                float top = -INFINITY, sum = 0;
                for (int64_t t = 0; t <= pos; t++) {
                    float v = 0;
                    for (int64_t i = 0; i < D; i++) v += q[a * D + i] * keys[t * W + a * D + i];
                    score[t] = v / sqrtf(D);
                    top = fmaxf(top, score[t]);
                }
                for (int64_t t = 0; t <= pos; t++) { score[t] = expf(score[t] - top); sum += score[t]; }
                float *m = mixed + a * D;
                memset(m, 0, D * sizeof(float));
                for (int64_t t = 0; t <= pos; t++)
                    for (int64_t i = 0; i < D; i++) m[i] += score[t] / sum * values[t * W + a * D + i];
            }
            product(h, ow, ob, mixed, W, W);
            for (int64_t i = 0; i < W; i++) x[i] += h[i];
            norm(h, x, n2w, n2b, W);
            product(u, uw, ub, h, 4 * W, W);
            for (int64_t i = 0; i < 4 * W; i++) u[i] = 0.5f * u[i] * (1 + erff(u[i] * 0.70710678f));
            product(h, dw, db, u, W, 4 * W);
            for (int64_t i = 0; i < W; i++) x[i] += h[i];
        }
        const float *nw = take(&p, W), *nb = take(&p, W), *head = take(&p, s->tokens * W);
        if (pos + 1 < known) continue;
        norm(h, x, nw, nb, W);
        product(logits, head, 0, h, s->tokens, W);
        int64_t best = 0;
        for (int64_t i = 1; i < s->tokens; i++) if (logits[i] > logits[best]) best = i;
        if (temperature > 0) {
            double sum = 0, seen = 0, w[s->tokens];
            for (int64_t i = 0; i < s->tokens; i++) sum += w[i] = exp((logits[i] - (double)logits[best]) / temperature);
            best = 0;
            for (; best < s->tokens - 1; best++) { seen += w[best]; if (seen > chances[pos + 1 - known] * sum) break; }
        }
        text[pos + 1] = best;
    }
}
