"""The engine's statements: claim, judge, gate, settle, free, wake.

Each function is one round trip; inside it every statement has a snapshot of its own (VOLATILE, READ
COMMITTED): what commits while a lock is waited for is seen. SQL compares figures with the clock, no rule
is judged here that Python did not turn into a figure (docs/decisions).
"""

from django.db import migrations

DECK = """
-- Ten jitter fractions in shuffled order, one of each tenth, in antithetic pairs: any deck's mean is 0.5
-- exactly, so that a hundred messages can't all draw short gaps.
CREATE FUNCTION engine_deck() RETURNS double precision[]
LANGUAGE sql VOLATILE AS $$
  SELECT array_agg(fraction ORDER BY random()) FROM (
    SELECT unnest(ARRAY[(tenth + noise) / 10, 1 - (tenth + noise) / 10]) AS fraction
    FROM (SELECT tenth, random() AS noise FROM generate_series(0, 4) AS tenth) AS drawn
  ) AS pairs
$$;
"""

LOAD = """
-- What a worker must know of a claim to prepare it; no row where the claim is gone or another tenant's.
CREATE FUNCTION engine_load(p_message uuid, p_lease bigint, p_organization uuid)
RETURNS TABLE (kind text, type text, address text, body text, faults integer, failures integer)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT c.kind::text, m.type::text, m.address::text, m.text, m.faults::integer, l.failures::integer
  FROM messages m JOIN channels c ON c.id = m.channel_id JOIN lanes l ON l.channel_id = m.channel_id
  WHERE m.id = p_message AND m.organization_id = p_organization AND m.status = 'claimed' AND m.lease = p_lease;
END $$;
"""

JUDGE = """
-- The verdict on a claimed message, by the lane, stream and person as they are now. Changes nothing.
CREATE FUNCTION engine_judge(
  p_message uuid, p_channel uuid, p_lease bigint, p_send_ttl double precision,
  OUT verdict text, OUT code text, OUT until_at timestamptz)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; s record; c record; t timestamptz; twice boolean;
BEGIN
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  SELECT status, lease, priority, stream_id, contact_id, not_before, expires_at INTO m
    FROM messages WHERE id = p_message;
  SELECT state, expires_at INTO s FROM streams WHERE id = m.stream_id;
  SELECT is_blocked, is_on_hold INTO c FROM contacts WHERE id = m.contact_id;
  -- Two that were frozen as two people may be one by now; what was begun for either is his message.
  twice := m.stream_id IS NOT NULL AND EXISTS (
    SELECT 1 FROM messages other
    WHERE other.contact_id = m.contact_id AND other.stream_id = m.stream_id AND other.id <> p_message
      AND (other.status IN ('sending', 'sent', 'delivered', 'read', 'played', 'in_doubt')
           OR other.status = 'failed' AND other.error_sent = 'maybe'));
  t := clock_timestamp();

  IF l.lease IS DISTINCT FROM p_lease OR l.busy_message IS DISTINCT FROM p_message
     OR m.status IS DISTINCT FROM 'claimed' OR m.lease IS DISTINCT FROM p_lease THEN
    verdict := 'stale'; code := 'stale';
  ELSIF s.state IN ('canceled', 'ended') THEN
    verdict := 'never'; code := 'broadcast_canceled';
  ELSIF m.priority = 2 AND m.contact_id IS NULL THEN
    -- Whoever was erased can't be asked whether he may be written to.
    verdict := 'never'; code := 'contact_erased';
  ELSIF m.priority > 0 AND c.is_blocked THEN
    verdict := 'never'; code := 'contact_blocked';
  ELSIF m.priority > 0 AND c.is_on_hold THEN
    verdict := 'never'; code := 'contact_on_hold';
  ELSIF twice THEN
    verdict := 'never'; code := 'duplicate';
  ELSIF m.expires_at <= t OR s.expires_at <= t THEN
    verdict := 'never'; code := 'expired';
  ELSIF s.state = 'paused' THEN
    verdict := 'stream_later'; code := 'broadcast_paused';
  ELSIF m.not_before > t THEN
    verdict := 'message_later'; code := 'retry_wait'; until_at := m.not_before;
  ELSIF NOT l.connected THEN
    verdict := 'lane_later'; code := 'channel_disconnected';
  ELSIF cardinality(l.holds) > 0 THEN
    verdict := 'lane_later'; code := l.holds[1];
  ELSIF l.day_ends_at <= t THEN
    verdict := 'figures_stale'; code := 'figures_stale';
  ELSIF m.priority > 0 AND l.open_until <= t + make_interval(secs => p_send_ttl) THEN
    -- What can't leave before closing waits; the policy tells for which opening.
    verdict := 'figures_stale'; code := 'figures_stale';
  ELSIF m.priority > 0 AND l.open_from > t THEN
    verdict := 'lane_later'; code := 'outside_window'; until_at := l.open_from;
  ELSIF l.used >= l.cap_hard OR (m.priority > 0 AND l.used >= l.cap_soft) THEN
    verdict := 'lane_later'; code := 'daily_limit'; until_at := l.day_ends_at;
  ELSIF l.any_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.any_at;
  ELSIF m.priority = 2 AND l.broadcast_at > t THEN
    verdict := 'lane_later'; code := 'pace'; until_at := l.broadcast_at;
  ELSE
    verdict := 'go'; code := '';
  END IF;
END $$;
"""

GATE = """
-- The pacer and the fence: lock the lane, judge with a new snapshot, and record the verdict. "go" commits
-- that the message is leaving before its first byte does.
CREATE FUNCTION engine_gate(
  p_message uuid, p_channel uuid, p_lease bigint, p_provider_id text,
  p_send_ttl double precision, p_busy_ttl double precision, p_figures_fresh boolean,
  OUT verdict text, OUT code text, OUT until_at timestamptz, OUT attempt integer)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; j record; t timestamptz; wait timestamptz; person uuid;
BEGIN
  PERFORM 1 FROM lanes WHERE channel_id = p_channel FOR UPDATE;
  -- The person, too: where two lanes hold messages of one stream for him, one of the gates sees the other's "go".
  -- A contact that was merged away while its lock was waited for is looked up again.
  LOOP
    SELECT contact_id INTO person FROM messages WHERE id = p_message AND stream_id IS NOT NULL;
    EXIT WHEN person IS NULL;
    PERFORM 1 FROM contacts WHERE id = person FOR NO KEY UPDATE;
    EXIT WHEN FOUND;
  END LOOP;
  PERFORM 1 FROM messages WHERE id = p_message FOR UPDATE;
  SELECT * INTO j FROM engine_judge(p_message, p_channel, p_lease, p_send_ttl);
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  SELECT msg.status, msg.lease, msg.priority, msg.attempt INTO m FROM messages msg WHERE msg.id = p_message;
  t := clock_timestamp();
  verdict := j.verdict; code := j.code; until_at := j.until_at; attempt := m.attempt;

  IF verdict = 'figures_stale' THEN
    IF NOT p_figures_fresh THEN RETURN; END IF;
    verdict := 'lane_later'; until_at := t + interval '1 second';
  END IF;

  IF verdict = 'stale' THEN
    -- Never begun under this lease (canceled, or taken out by evidence): the lane is free again.
    IF l.lease = p_lease AND l.busy_message = p_message
       AND NOT (m.status = 'sending' AND m.lease = p_lease) THEN
      UPDATE lanes SET busy_message = NULL, busy_until = NULL, next_at = greatest(any_at, t)
        WHERE channel_id = p_channel;
    END IF;
    RETURN;
  END IF;

  IF verdict = 'go' THEN
    IF cardinality(l.deck) = 0 THEN l.deck := engine_deck(); END IF;
    l.gap_now := l.gap + l.gap_jitter * l.deck[1];
    IF m.priority = 2 THEN
      l.broadcast_gap_now := l.broadcast_gap + l.broadcast_gap_jitter * random();
      l.broadcast_at := t + make_interval(secs => l.broadcast_gap_now);
    END IF;
    UPDATE messages msg SET status = 'sending', attempt = msg.attempt + 1, sending_at = t,
        provider_id = p_provider_id, waiting_code = '', waiting_until = NULL, error_code = '',
        error_detail = '', error_sent = '', updated_at = t
      WHERE msg.id = p_message RETURNING msg.attempt INTO attempt;
    UPDATE lanes SET deck = l.deck[2:], gap_now = l.gap_now, broadcast_gap_now = l.broadcast_gap_now,
        any_at = t + make_interval(secs => l.gap_now), broadcast_at = l.broadcast_at,
        used = used + 1, busy_until = t + make_interval(secs => p_busy_ttl)
      WHERE channel_id = p_channel;
    IF p_provider_id IS NOT NULL THEN
      INSERT INTO receipts (channel_id, provider_id, message_id, attempt, rank, error_code, created_at)
        VALUES (p_channel, p_provider_id, p_message, engine_gate.attempt, 0, '', t)
        ON CONFLICT (channel_id, provider_id) DO UPDATE
          SET message_id = excluded.message_id, attempt = excluded.attempt;
    END IF;
    RETURN;
  END IF;

  wait := until_at;
  IF verdict = 'never' THEN
    UPDATE messages SET lease = NULL, waiting_code = '', waiting_until = NULL, updated_at = t,
        error_code = engine_gate.code,
        status = CASE engine_gate.code WHEN 'broadcast_canceled' THEN 'canceled'
                                       WHEN 'expired' THEN 'expired' ELSE 'skipped' END
      WHERE id = p_message;
  ELSE
    IF verdict = 'message_later' THEN until_at := coalesce(until_at, t + interval '15 minutes'); END IF;
    UPDATE messages SET status = 'queued', lease = NULL, waiting_code = engine_gate.code,
        waiting_until = engine_gate.until_at, updated_at = t,
        not_before = CASE WHEN verdict = 'message_later' THEN engine_gate.until_at ELSE not_before END
      WHERE id = p_message;
  END IF;
  UPDATE lanes SET busy_message = NULL, busy_until = NULL,
      -- "lane later" without a time: only an event can tell, and whoever brings it wakes the lane.
      next_at = CASE WHEN verdict = 'lane_later' THEN wait ELSE greatest(any_at, t) END
    WHERE channel_id = p_channel;
END $$;
"""

CLAIM = """
-- Locks due, free lanes, fair over organizations; then, with a new snapshot, picks one message for each.
CREATE FUNCTION engine_claim(p_limit integer, p_lease_seconds double precision)
RETURNS TABLE (message_id uuid, channel_id uuid, lease bigint, organization_id uuid)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE due uuid[]; t timestamptz;
BEGIN
  SELECT array_agg(locked.channel_id) INTO due FROM (
    SELECT l.channel_id FROM lanes l JOIN (
      SELECT channel_id, next_at,
             row_number() OVER (PARTITION BY organization_id ORDER BY next_at) AS place
        FROM lanes WHERE next_at <= clock_timestamp() AND busy_message IS NULL
        ORDER BY place, next_at LIMIT p_limit
    ) AS candidates USING (channel_id)
    WHERE l.next_at <= clock_timestamp() AND l.busy_message IS NULL
    FOR UPDATE OF l SKIP LOCKED
  ) AS locked;
  IF due IS NULL THEN RETURN; END IF;
  t := clock_timestamp();

  RETURN QUERY
  WITH pick AS MATERIALIZED (
    SELECT l.channel_id, l.lease + 1 AS lease, next.id AS message_id
    FROM lanes l LEFT JOIN LATERAL (
      SELECT m.id FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
      WHERE m.channel_id = l.channel_id AND m.status = 'queued'
        AND (m.not_before IS NULL OR m.not_before <= t)
        AND (m.priority < 2 OR l.broadcast_at <= t)
        AND (m.stream_id IS NULL OR s.state = 'running')
      ORDER BY m.priority, m.turn, m.position LIMIT 1
    ) AS next ON l.connected AND cardinality(l.holds) = 0 AND l.any_at <= t
    WHERE l.channel_id = ANY (due)
  ), taken AS (
    UPDATE messages m SET status = 'claimed', lease = p.lease, updated_at = t
    FROM pick p WHERE m.id = p.message_id AND m.status = 'queued'
    RETURNING m.id, m.channel_id, m.lease, m.organization_id
  ), busy AS (
    UPDATE lanes l SET lease = k.lease, busy_message = k.id, next_at = NULL,
        busy_until = t + make_interval(secs => p_lease_seconds)
    FROM taken k WHERE l.channel_id = k.channel_id
  ), idle AS (
    UPDATE lanes l SET next_at = CASE
        WHEN NOT l.connected OR cardinality(l.holds) > 0 THEN NULL
        WHEN l.any_at > t THEN l.any_at
        WHEN p.message_id IS NOT NULL THEN t
        ELSE (
          SELECT min(greatest(coalesce(m.not_before, t), CASE WHEN m.priority = 2 THEN l.broadcast_at ELSE t END))
          FROM messages m LEFT JOIN streams s ON s.id = m.stream_id
          WHERE m.channel_id = l.channel_id AND m.status = 'queued'
            AND (m.stream_id IS NULL OR s.state = 'running'))
        END
    FROM pick p WHERE l.channel_id = p.channel_id
      AND NOT EXISTS (SELECT 1 FROM taken k WHERE k.channel_id = p.channel_id)
  )
  SELECT k.id, k.channel_id, k.lease, k.organization_id FROM taken k;
END $$;
"""

SETTLE = """
-- What became of one attempt. Repeatable; an older attempt's "sent" is evidence, its "not sent" is nothing.
-- p_outcome: sent | not_sent | failed | unknown. Returns the status in which the message is left.
CREATE FUNCTION engine_settle(
  p_message uuid, p_channel uuid, p_lease bigint, p_attempt integer, p_outcome text, p_provider_id text,
  p_code text, p_detail text, p_wait double precision, p_lane_wait double precision,
  p_counts_as_fault boolean, p_hold_after integer)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; m record; r record; t timestamptz; stream_state text; result text; own boolean;
BEGIN
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel FOR UPDATE;
  SELECT status, lease, attempt, priority, stream_id, sending_at INTO m
    FROM messages WHERE id = p_message FOR UPDATE;
  t := clock_timestamp();
  result := m.status;
  own := l.lease = p_lease AND l.busy_message = p_message;

  IF p_outcome = 'sent' THEN
    result := engine_evidence(p_message, p_channel, p_provider_id, p_attempt, 3, t);
  ELSIF m.status = 'sending' AND m.lease = p_lease AND m.attempt = p_attempt THEN
    IF p_outcome = 'unknown' THEN
      UPDATE messages SET error_code = p_code, error_detail = p_detail, error_sent = 'maybe', updated_at = t
        WHERE id = p_message;
    ELSE
      SELECT state INTO stream_state FROM streams WHERE id = m.stream_id;
      result := CASE WHEN p_outcome = 'failed' THEN 'failed'
                     WHEN stream_state = 'canceled' THEN 'canceled' ELSE 'queued' END;
      UPDATE messages SET status = result, lease = NULL, updated_at = t, provider_id = NULL,
          error_code = p_code, error_detail = p_detail, error_sent = 'no',
          faults = faults + p_counts_as_fault::integer,
          not_before = CASE WHEN result = 'queued' AND p_wait > 0
                            THEN t + make_interval(secs => p_wait) ELSE NULL END,
          waiting_code = CASE WHEN result = 'queued' THEN p_code ELSE '' END,
          waiting_until = CASE WHEN result = 'queued' AND p_wait > 0
                               THEN t + make_interval(secs => p_wait) ELSE NULL END,
          history = history || jsonb_build_object(
            'attempt', p_attempt, 'begun_at', m.sending_at, 'ended_at', t, 'code', p_code, 'sent', 'no')
        WHERE id = p_message;
      -- Proven not to have left: its place in the day is given back, within its day.
      IF m.sending_at >= l.day_starts_at THEN
        UPDATE lanes SET used = greatest(used - 1, 0) WHERE channel_id = p_channel;
      END IF;
    END IF;
  END IF;

  IF own THEN
    UPDATE lanes SET busy_message = NULL, busy_until = NULL,
        -- Gaps count from the end of one call to the gate of the next.
        any_at = greatest(any_at, t + make_interval(secs => gap_now)),
        broadcast_at = CASE WHEN m.priority = 2
          THEN greatest(broadcast_at, t + make_interval(secs => broadcast_gap_now)) ELSE broadcast_at END,
        failures = CASE WHEN p_lane_wait > 0 OR p_outcome = 'unknown' THEN failures + 1 ELSE 0 END
      WHERE channel_id = p_channel;
    UPDATE lanes SET
        holds = CASE WHEN failures >= p_hold_after AND NOT holds @> ARRAY['gateway_failing']::varchar[]
                     THEN holds || ARRAY['gateway_failing']::varchar[] ELSE holds END,
        next_at = greatest(any_at, t + make_interval(secs => p_lane_wait))
      WHERE channel_id = p_channel;
  END IF;
  RETURN result;
END $$;
"""

EVIDENCE = """
-- Evidence that an attempt left, or what became of it: receipts and message move forward only.
-- Ranks: messaging.ranks. p_at is when the provider says it happened.
CREATE FUNCTION engine_evidence(
  p_message uuid, p_channel uuid, p_provider_id text, p_attempt integer, p_rank integer, p_at timestamptz)
RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
DECLARE r record; known uuid; result text; t timestamptz;
BEGIN
  PERFORM 1 FROM messages WHERE id = p_message FOR UPDATE;
  t := clock_timestamp();
  IF p_provider_id IS NOT NULL THEN
    -- A message first seen as written on the phone turns out to be this one: it is absorbed.
    SELECT message_id INTO known FROM receipts
      WHERE channel_id = p_channel AND provider_id = p_provider_id FOR UPDATE;
    INSERT INTO receipts AS rc (channel_id, provider_id, message_id, attempt, rank, sent_at, error_code, created_at)
      VALUES (p_channel, p_provider_id, p_message, p_attempt, p_rank, p_at, '', t)
      ON CONFLICT (channel_id, provider_id) DO UPDATE SET
        message_id = excluded.message_id, attempt = excluded.attempt,
        rank = greatest(rc.rank, excluded.rank), sent_at = coalesce(rc.sent_at, excluded.sent_at)
      RETURNING rank, rc.sent_at, delivered_at, read_at, failed_at, error_code INTO r;
    IF known IS NOT NULL AND known <> p_message THEN
      DELETE FROM messages WHERE id = known AND origin = 'external_device';
    END IF;
  ELSE
    SELECT p_rank AS rank, p_at AS sent_at, NULL::timestamptz AS delivered_at, NULL::timestamptz AS read_at,
           NULL::timestamptz AS failed_at, '' AS error_code INTO r;
  END IF;
  UPDATE messages m SET
      status = engine_status(greatest(r.rank, p_rank)),
      provider_id = coalesce(p_provider_id, m.provider_id),
      sent_at = coalesce(m.sent_at, r.sent_at, p_at),
      delivered_at = coalesce(m.delivered_at, r.delivered_at), read_at = coalesce(m.read_at, r.read_at),
      lease = NULL, not_before = NULL, waiting_code = '', waiting_until = NULL,
      error_code = '', error_detail = '', error_sent = '', updated_at = t
    WHERE m.id = p_message AND engine_rank(m.status, m.error_sent) < greatest(r.rank, p_rank);
  -- An ack -1 that came before the answer has waited here for it.
  UPDATE messages SET status = 'failed', error_sent = 'maybe', error_code = r.error_code
    WHERE id = p_message AND status = 'sent' AND r.failed_at IS NOT NULL AND r.rank < 4;
  SELECT status INTO result FROM messages WHERE id = p_message;
  RETURN result;
END $$;
"""

RANKS = """
-- The order of statuses, as messaging.ranks has it: what evidence may lift stands below its rank. A failure
-- told by ack -1 is lifted by "delivered" and better only.
CREATE FUNCTION engine_rank(p_status text, p_sent text) RETURNS integer
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_status WHEN 'sent' THEN 3 WHEN 'delivered' THEN 4 WHEN 'read' THEN 5 WHEN 'played' THEN 6
                       WHEN 'failed' THEN CASE p_sent WHEN 'maybe' THEN 3 ELSE 0 END
                       WHEN 'received' THEN 9 ELSE 0 END
$$;
CREATE FUNCTION engine_status(p_rank integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_rank WHEN 3 THEN 'sent' WHEN 4 THEN 'delivered' WHEN 5 THEN 'read' WHEN 6 THEN 'played' END
$$;
"""

ACKS = """
-- A batch of acks of one channel, set-wise: messages are locked first, in order (one lock order everywhere;
-- unsorted batches deadlocked). Rank -1 is a failure. Returns the messages that moved.
CREATE FUNCTION engine_acks(
  p_channel uuid, p_ids text[], p_ranks integer[], p_times timestamptz[], p_codes text[])
RETURNS TABLE (message_id uuid, status text)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM messages m WHERE m.id IN (
      SELECT rc.message_id FROM receipts rc WHERE rc.channel_id = p_channel AND rc.provider_id = ANY (p_ids)
    ) ORDER BY m.id FOR UPDATE;
  RETURN QUERY
  WITH acks AS (
    SELECT provider_id, max(rank) AS rank,
           min(happened_at) FILTER (WHERE rank >= 3) AS sent_at,
           min(happened_at) FILTER (WHERE rank >= 4) AS delivered_at,
           min(happened_at) FILTER (WHERE rank >= 5) AS read_at,
           min(happened_at) FILTER (WHERE rank < 0) AS failed_at,
           max(code) FILTER (WHERE rank < 0) AS code
      FROM unnest(p_ids, p_ranks, p_times, p_codes) AS given (provider_id, rank, happened_at, code)
      GROUP BY provider_id ORDER BY provider_id
  ), met AS (
    INSERT INTO receipts AS rc (channel_id, provider_id, attempt, rank, sent_at, delivered_at, read_at,
                                failed_at, error_code, created_at)
    SELECT p_channel, provider_id, 0, greatest(rank, 0), sent_at, delivered_at, read_at, failed_at,
           coalesce(code, ''), clock_timestamp() FROM acks
    ON CONFLICT (channel_id, provider_id) DO UPDATE SET
      rank = greatest(rc.rank, excluded.rank), sent_at = coalesce(rc.sent_at, excluded.sent_at),
      delivered_at = coalesce(rc.delivered_at, excluded.delivered_at),
      read_at = coalesce(rc.read_at, excluded.read_at),
      failed_at = coalesce(rc.failed_at, excluded.failed_at),
      error_code = coalesce(nullif(excluded.error_code, ''), rc.error_code)
    RETURNING rc.message_id, rc.attempt, rc.rank, rc.sent_at, rc.delivered_at, rc.read_at, rc.failed_at, rc.error_code
  ), risen AS (
    UPDATE messages m SET status = engine_status(met.rank),
        sent_at = coalesce(m.sent_at, met.sent_at), delivered_at = coalesce(m.delivered_at, met.delivered_at),
        read_at = coalesce(m.read_at, met.read_at), lease = NULL, not_before = NULL,
        waiting_code = '', waiting_until = NULL, error_code = '', error_detail = '', error_sent = '',
        updated_at = clock_timestamp()
      FROM met WHERE m.id = met.message_id AND met.rank >= 3 AND engine_rank(m.status, m.error_sent) < met.rank
    RETURNING m.id, m.status
  ), fallen AS (
    -- Ack -1: failed, unless something at or above delivered is known. It may have left all the same.
    UPDATE messages m SET status = 'failed', error_sent = 'maybe', error_code = met.error_code,
        lease = NULL, updated_at = clock_timestamp()
      FROM met WHERE m.id = met.message_id AND met.failed_at IS NOT NULL AND met.rank < 4
        AND met.attempt = m.attempt AND m.status IN ('sending', 'sent', 'in_doubt')
        AND NOT EXISTS (SELECT 1 FROM risen WHERE risen.id = m.id)
    RETURNING m.id, m.status
  )
  SELECT id, status::text FROM risen UNION ALL SELECT id, status::text FROM fallen;
END $$;
"""

FREE = """
-- Leases that are over: the lane is free whatever its message's state; a claim never begun is queued again
-- (or canceled with its stream), a begun one waits on for evidence. Gaps as a settle sets them.
CREATE FUNCTION engine_free(p_limit integer) RETURNS integer
LANGUAGE plpgsql VOLATILE AS $$
DECLARE l lanes; t timestamptz; freed integer := 0; kind integer;
BEGIN
  FOR l IN SELECT * FROM lanes WHERE busy_message IS NOT NULL AND busy_until < clock_timestamp()
           ORDER BY busy_until LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    t := clock_timestamp();
    UPDATE messages m SET lease = NULL, updated_at = t,
        status = CASE WHEN EXISTS (SELECT 1 FROM streams s WHERE s.id = m.stream_id AND s.state = 'canceled')
                      THEN 'canceled' ELSE 'queued' END
      WHERE m.id = l.busy_message AND m.status = 'claimed' AND m.lease = l.lease;
    SELECT priority INTO kind FROM messages WHERE id = l.busy_message;
    UPDATE lanes SET busy_message = NULL, busy_until = NULL,
        any_at = greatest(any_at, t + make_interval(secs => gap_now)),
        broadcast_at = CASE WHEN kind = 2 THEN greatest(broadcast_at, t + make_interval(secs => broadcast_gap_now))
                            ELSE broadcast_at END,
        next_at = greatest(any_at, t)
      WHERE channel_id = l.channel_id;
    freed := freed + 1;
  END LOOP;
  RETURN freed;
END $$;
"""

WAKE = """
-- There may be work: look now. Moving next_at earlier is free of harm; the gate keeps the pace.
CREATE FUNCTION engine_wake(p_channels uuid[]) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE channel_id = ANY (p_channels) ORDER BY channel_id FOR UPDATE;
  -- A statement of its own: the one that waited for the lock still sees next_at as it was before.
  UPDATE lanes SET next_at = clock_timestamp()
    WHERE channel_id = ANY (p_channels) AND (next_at IS NULL OR next_at > clock_timestamp());
  PERFORM pg_notify('lanes', '');
END $$;
"""

# The tables live on updates of columns that no index holds: room in the page keeps them heap-only.
STORAGE = """
ALTER TABLE lanes SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01);
ALTER TABLE messages SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE receipts SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
"""

DROP = """
DROP FUNCTION engine_wake(uuid[]);
DROP FUNCTION engine_free(integer);
DROP FUNCTION engine_acks(uuid, text[], integer[], timestamptz[], text[]);
DROP FUNCTION engine_settle(uuid, uuid, bigint, integer, text, text, text, text, double precision,
  double precision, boolean, integer);
DROP FUNCTION engine_evidence(uuid, uuid, text, integer, integer, timestamptz);
DROP FUNCTION engine_status(integer);
DROP FUNCTION engine_rank(text, text);
DROP FUNCTION engine_claim(integer, double precision);
DROP FUNCTION engine_gate(uuid, uuid, bigint, text, double precision, double precision, boolean);
DROP FUNCTION engine_load(uuid, bigint, uuid);
DROP FUNCTION engine_judge(uuid, uuid, bigint, double precision);
DROP FUNCTION engine_deck();
"""


class Migration(migrations.Migration):
    dependencies = [("messaging", "0001_initial"), ("audience", "0001_initial")]

    operations = [
        migrations.RunSQL(DECK + LOAD + JUDGE + GATE + CLAIM + RANKS + EVIDENCE + SETTLE + ACKS + FREE + WAKE, DROP),
        migrations.RunSQL(STORAGE, migrations.RunSQL.noop),
    ]
