-- The gate of a slice: each message is judged as engine_gate judges one, all verdicts are recorded and committed
-- together. "go" comes with the seconds until its turn, so that a slice leaves at the lane's rate.
CREATE FUNCTION engine_gate_slice(
  p_messages uuid[], p_channel uuid, p_lease bigint, p_provider_ids text[], p_send_ttl double precision,
  p_most_ahead double precision, p_figures_fresh boolean)
RETURNS TABLE (message_id uuid, verdict text, code text, attempt integer, starts_in double precision)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE l lanes; m record; j record; t timestamptz; persons uuid[]; begun text[] := '{}'; begins timestamptz;
  verdicts text[] := '{}'; codes text[] := '{}'; untils timestamptz[] := '{}'; new_ones boolean[] := '{}';
  starts double precision[] := '{}'; going integer := 0; going_new integer := 0;
BEGIN
  PERFORM 1 FROM lanes WHERE channel_id = p_channel FOR UPDATE;
  -- The persons, as engine_gate locks one; who was merged away while his lock was waited for is looked up again.
  LOOP
    SELECT array_agg(DISTINCT contact_id) INTO persons FROM messages
      WHERE id = ANY (p_messages) AND stream_id IS NOT NULL AND contact_id IS NOT NULL;
    EXIT WHEN persons IS NULL;
    PERFORM 1 FROM contacts WHERE id = ANY (persons) ORDER BY id FOR NO KEY UPDATE;
    EXIT WHEN NOT EXISTS (
      SELECT 1 FROM messages WHERE id = ANY (p_messages) AND stream_id IS NOT NULL AND contact_id <> ALL (persons));
  END LOOP;
  PERFORM 1 FROM messages WHERE id = ANY (p_messages) ORDER BY id FOR UPDATE;
  SELECT * INTO l FROM lanes WHERE channel_id = p_channel;
  t := clock_timestamp();
  begins := greatest(l.broadcast_at, t);

  FOR m IN SELECT given.place, msg.id, msg.priority, msg.contact_id || ' ' || msg.stream_id AS person
           FROM unnest(p_messages) WITH ORDINALITY AS given (id, place) LEFT JOIN messages msg ON msg.id = given.id
           ORDER BY given.place LOOP
    SELECT * INTO j FROM engine_judge(m.id, p_channel, p_lease, p_send_ttl, t);
    IF j.verdict = 'figures_stale' THEN
      IF NOT p_figures_fresh THEN
        RETURN QUERY SELECT m.id, j.verdict, j.code, 0, 0::double precision;
        RETURN;
      END IF;
      j.verdict := 'lane_later'; j.until_at := t + interval '1 second';
    ELSIF j.verdict = 'go' THEN
      -- What the judge can't see yet: those that go before it in this slice.
      IF m.person = ANY (begun) THEN
        j.verdict := 'never'; j.code := 'duplicate';
      ELSIF l.used + going >= l.cap_hard OR (m.priority > 0 AND l.used + going >= l.cap_soft) THEN
        j.verdict := 'lane_later'; j.code := 'daily_limit'; j.until_at := l.day_ends_at;
      ELSIF m.priority > 0 AND j.is_new AND l.used_new + going_new >= l.cap_new THEN
        j.verdict := 'message_later'; j.code := 'new_people_limit'; j.until_at := l.day_ends_at;
      ELSIF begins > t + make_interval(secs => p_most_ahead) THEN
        j.verdict := 'lane_later'; j.code := 'pace'; j.until_at := begins;
      END IF;
    END IF;
    IF j.verdict = 'message_later' THEN j.until_at := coalesce(j.until_at, t + interval '15 minutes'); END IF;
    starts := starts || extract(epoch FROM begins - t)::double precision + going / coalesce(l.rate, 1);
    IF j.verdict = 'go' THEN
      going := going + 1; going_new := going_new + j.is_new::integer;
      IF m.person IS NOT NULL THEN begun := begun || m.person; END IF;
    END IF;
    verdicts := verdicts || j.verdict; codes := codes || j.code; untils := untils || j.until_at;
    new_ones := new_ones || j.is_new;
  END LOOP;

  UPDATE messages msg SET status = 'sending', attempt = msg.attempt + 1, sending_at = t, is_new_person = g.is_new,
      provider_id = g.provider_id, waiting_code = '', waiting_until = NULL, error_code = '', error_detail = '',
      error_sent = '', look_ups = 0, updated_at = t
    FROM unnest(p_messages, p_provider_ids, verdicts, new_ones) AS g (id, provider_id, verdict, is_new)
    WHERE msg.id = g.id AND g.verdict = 'go';
  INSERT INTO receipts (channel_id, provider_id, message_id, attempt, rank, error_code, created_at)
    SELECT p_channel, g.provider_id, g.id, msg.attempt, 0, '', t
    FROM unnest(p_messages, p_provider_ids, verdicts) AS g (id, provider_id, verdict) JOIN messages msg ON msg.id = g.id
    WHERE g.verdict = 'go' AND g.provider_id IS NOT NULL ORDER BY g.provider_id
    ON CONFLICT (channel_id, provider_id) DO UPDATE
      -- A re-used id: as engine_gate.
      SET message_id = excluded.message_id, attempt = excluded.attempt, failed_at = NULL, error_code = '',
          rank = CASE WHEN receipts.failed_at IS NULL THEN receipts.rank ELSE 0 END;
  UPDATE messages msg SET lease = NULL, updated_at = t,
      status = CASE WHEN g.verdict <> 'never' THEN 'queued' WHEN msg.doubted THEN 'in_doubt' WHEN g.code = 'broadcast_canceled' THEN 'canceled'
                    WHEN g.code = 'expired' THEN 'expired' ELSE 'skipped' END,
      error_sent = CASE WHEN g.verdict = 'never' AND msg.doubted THEN 'maybe' ELSE msg.error_sent END,
      error_code = CASE WHEN g.verdict = 'never' AND msg.doubted THEN 'outcome_unknown'
                        WHEN g.verdict = 'never' THEN g.code ELSE msg.error_code END,
      waiting_code = CASE WHEN g.verdict = 'never' THEN '' ELSE g.code END,
      waiting_until = CASE WHEN g.verdict = 'never' THEN NULL ELSE g.until_at END,
      not_before = CASE WHEN g.verdict = 'message_later' THEN g.until_at ELSE msg.not_before END
    FROM unnest(p_messages, verdicts, codes, untils) AS g (id, verdict, code, until_at)
    WHERE msg.id = g.id AND g.verdict NOT IN ('go', 'stale');
  UPDATE lanes SET used = used + going, used_new = used_new + going_new,
      broadcast_at = begins + make_interval(secs => going / coalesce(rate, 1)),
      -- "lane later" without a time: only an event can tell, and whoever brings it wakes the lane.
      next_at = CASE WHEN 'lane_later' = ANY (verdicts) THEN (
                  SELECT max(until_at) FROM unnest(verdicts, untils) AS g (verdict, until_at)
                  WHERE verdict = 'lane_later')
                ELSE next_at END
    WHERE channel_id = p_channel;
  RETURN QUERY SELECT g.id, g.verdict, g.code, msg.attempt::integer, g.starts_in
    FROM unnest(p_messages, verdicts, codes, starts) AS g (id, verdict, code, starts_in)
    LEFT JOIN messages msg ON msg.id = g.id;
END $$;
