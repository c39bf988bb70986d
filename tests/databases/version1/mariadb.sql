/*M!999999\- enable the sandbox mode */ 

/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */;
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */;
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */;
/*!40101 SET NAMES utf8mb4 */;
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */;
/*!40103 SET TIME_ZONE='+00:00' */;
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */;
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */;
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */;
DROP SEQUENCE IF EXISTS `larder_seq`;
CREATE SEQUENCE `larder_seq` start with 1 minvalue 1 maxvalue 9223372036854775806 increment by 1024 nocache nocycle ENGINE=InnoDB;
DO SETVAL(`larder_seq`, 1025, 0);
DROP TABLE IF EXISTS `larder_chunk`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_chunk` (
  `id` bigint(20) NOT NULL,
  `pos` bigint(20) NOT NULL,
  `value` longblob NOT NULL,
  PRIMARY KEY (`id`,`pos`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_chunk` DISABLE KEYS */;
INSERT INTO `larder_chunk` VALUES
(1,4,0x7461696C);
/*!40000 ALTER TABLE `larder_chunk` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_count`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_count` (
  `number` int(11) NOT NULL,
  `slot` int(11) NOT NULL,
  `keys` bigint(20) NOT NULL,
  `expires` bigint(20) NOT NULL,
  PRIMARY KEY (`number`,`slot`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_count` DISABLE KEYS */;
INSERT INTO `larder_count` VALUES
(0,5,7,1),
(3,5,1,0);
/*!40000 ALTER TABLE `larder_count` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_db`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_db` (
  `db` int(11) NOT NULL,
  `number` int(11) NOT NULL,
  `keys` bigint(20) NOT NULL,
  `expires` bigint(20) NOT NULL,
  PRIMARY KEY (`db`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_db` DISABLE KEYS */;
INSERT INTO `larder_db` VALUES
(0,0,0,0),
(1,1,0,0),
(2,2,0,0),
(3,3,0,0),
(4,4,0,0),
(5,5,0,0),
(6,6,0,0),
(7,7,0,0),
(8,8,0,0),
(9,9,0,0),
(10,10,0,0),
(11,11,0,0),
(12,12,0,0),
(13,13,0,0),
(14,14,0,0),
(15,15,0,0);
/*!40000 ALTER TABLE `larder_db` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_hash`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_hash` (
  `id` bigint(20) NOT NULL,
  `field` varbinary(1024) NOT NULL,
  `field_rest` longblob NOT NULL DEFAULT '',
  `expire_at` bigint(20) NOT NULL,
  `ord` bigint(20) NOT NULL,
  `value` longblob NOT NULL,
  PRIMARY KEY (`id`,`field`),
  KEY `larder_hash_ord` (`id`,`ord`),
  KEY `larder_hash_expire` (`id`,`expire_at`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_hash` DISABLE KEYS */;
INSERT INTO `larder_hash` VALUES
(2,0x66,'',0,0,0x76),
(2,0x67,'',0,1,0x77);
/*!40000 ALTER TABLE `larder_hash` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_hashes`;
/*!50001 DROP VIEW IF EXISTS `larder_hashes`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_hashes` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `field`,
 NULL AS `value`,
 NULL AS `expires`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
DROP TABLE IF EXISTS `larder_journal`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_journal` (
  `seq` bigint(20) NOT NULL,
  `changes` longblob NOT NULL,
  PRIMARY KEY (`seq`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_journal` DISABLE KEYS */;
/*!40000 ALTER TABLE `larder_journal` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_key`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_key` (
  `seq` bigint(20) NOT NULL DEFAULT nextval(`larder_seq`),
  `db` int(11) NOT NULL,
  `key` varbinary(1024) NOT NULL,
  `key_rest` longblob NOT NULL DEFAULT '',
  `type` smallint(6) NOT NULL,
  `id` bigint(20) NOT NULL,
  `size` bigint(20) NOT NULL,
  `first` bigint(20) NOT NULL,
  `version` bigint(20) NOT NULL,
  `expire_at` bigint(20) NOT NULL,
  `due_at` bigint(20) GENERATED ALWAYS AS (if(`type` = 2 and `first` <> 0,`first`,NULL)) STORED,
  `value` longblob NOT NULL,
  PRIMARY KEY (`seq`),
  UNIQUE KEY `larder_key_name` (`db`,`key`),
  KEY `larder_key_expire` (`expire_at`,`db`),
  KEY `larder_key_first` (`due_at`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_key` DISABLE KEYS */;
INSERT INTO `larder_key` VALUES
(1,0,0x6772656574696E67,'',1,0,0,0,1794776265897578,0,NULL,0x6772C3BCC39F65200020616E6420616C6C),
(2,0,0x6C6F6E67,'',1,1,65540,0,1794776265898767,0,NULL,''),
(3,0,0x6C61746572,'',1,0,0,0,1794776265900740,5794776265900,NULL,0x78),
(4,0,0x68617368,'',2,2,2,0,1794776265902481,0,NULL,''),
(5,0,0x6C697374,'',3,3,3,0,1794776265904304,0,NULL,''),
(6,0,0x736574,'',4,4,2,0,1794776265905308,0,NULL,''),
(7,0,0x7A736574,'',5,5,3,0,1794776265906368,0,NULL,''),
(8,0,0x64656C65746564,'',0,0,0,0,1794776265907802,-1,NULL,''),
(9,3,0x6F74686572,'',1,0,0,0,1794776265908581,0,NULL,0x33);
/*!40000 ALTER TABLE `larder_key` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_keys`;
/*!50001 DROP VIEW IF EXISTS `larder_keys`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_keys` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `type`,
 NULL AS `size`,
 NULL AS `expires`,
 NULL AS `ttl`,
 NULL AS `version`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
DROP TABLE IF EXISTS `larder_list`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_list` (
  `id` bigint(20) NOT NULL,
  `pos` bigint(20) NOT NULL,
  `value` longblob NOT NULL,
  PRIMARY KEY (`id`,`pos`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_list` DISABLE KEYS */;
INSERT INTO `larder_list` VALUES
(3,0,0x61),
(3,1,0x62),
(3,2,0x63);
/*!40000 ALTER TABLE `larder_list` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_lists`;
/*!50001 DROP VIEW IF EXISTS `larder_lists`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_lists` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `position`,
 NULL AS `value`,
 NULL AS `expires`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
DROP TABLE IF EXISTS `larder_lock`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_lock` (
  `n` int(11) NOT NULL,
  PRIMARY KEY (`n`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_lock` DISABLE KEYS */;
INSERT INTO `larder_lock` VALUES
(-1),
(0),
(1),
(2),
(3),
(4),
(5),
(6),
(7),
(8),
(9),
(10),
(11),
(12),
(13),
(14),
(15),
(16),
(17),
(18),
(19),
(20),
(21),
(22),
(23),
(24),
(25),
(26),
(27),
(28),
(29),
(30),
(31),
(32),
(33),
(34),
(35),
(36),
(37),
(38),
(39),
(40),
(41),
(42),
(43),
(44),
(45),
(46),
(47),
(48),
(49),
(50),
(51),
(52),
(53),
(54),
(55),
(56),
(57),
(58),
(59),
(60),
(61),
(62),
(63),
(64),
(65),
(66),
(67),
(68),
(69),
(70),
(71),
(72),
(73),
(74),
(75),
(76),
(77),
(78),
(79),
(80),
(81),
(82),
(83),
(84),
(85),
(86),
(87),
(88),
(89),
(90),
(91),
(92),
(93),
(94),
(95),
(96),
(97),
(98),
(99),
(100),
(101),
(102),
(103),
(104),
(105),
(106),
(107),
(108),
(109),
(110),
(111),
(112),
(113),
(114),
(115),
(116),
(117),
(118),
(119),
(120),
(121),
(122),
(123),
(124),
(125),
(126),
(127),
(128),
(129),
(130),
(131),
(132),
(133),
(134),
(135),
(136),
(137),
(138),
(139),
(140),
(141),
(142),
(143),
(144),
(145),
(146),
(147),
(148),
(149),
(150),
(151),
(152),
(153),
(154),
(155),
(156),
(157),
(158),
(159),
(160),
(161),
(162),
(163),
(164),
(165),
(166),
(167),
(168),
(169),
(170),
(171),
(172),
(173),
(174),
(175),
(176),
(177),
(178),
(179),
(180),
(181),
(182),
(183),
(184),
(185),
(186),
(187),
(188),
(189),
(190),
(191),
(192),
(193),
(194),
(195),
(196),
(197),
(198),
(199),
(200),
(201),
(202),
(203),
(204),
(205),
(206),
(207),
(208),
(209),
(210),
(211),
(212),
(213),
(214),
(215),
(216),
(217),
(218),
(219),
(220),
(221),
(222),
(223),
(224),
(225),
(226),
(227),
(228),
(229),
(230),
(231),
(232),
(233),
(234),
(235),
(236),
(237),
(238),
(239),
(240),
(241),
(242),
(243),
(244),
(245),
(246),
(247),
(248),
(249),
(250),
(251),
(252),
(253),
(254),
(255),
(256),
(257),
(258),
(259),
(260),
(261),
(262),
(263),
(264),
(265),
(266),
(267),
(268),
(269),
(270),
(271),
(272),
(273),
(274),
(275),
(276),
(277),
(278),
(279),
(280),
(281),
(282),
(283),
(284),
(285),
(286),
(287),
(288),
(289),
(290),
(291),
(292),
(293),
(294),
(295),
(296),
(297),
(298),
(299),
(300),
(301),
(302),
(303),
(304),
(305),
(306),
(307),
(308),
(309),
(310),
(311),
(312),
(313),
(314),
(315),
(316),
(317),
(318),
(319),
(320),
(321),
(322),
(323),
(324),
(325),
(326),
(327),
(328),
(329),
(330),
(331),
(332),
(333),
(334),
(335),
(336),
(337),
(338),
(339),
(340),
(341),
(342),
(343),
(344),
(345),
(346),
(347),
(348),
(349),
(350),
(351),
(352),
(353),
(354),
(355),
(356),
(357),
(358),
(359),
(360),
(361),
(362),
(363),
(364),
(365),
(366),
(367),
(368),
(369),
(370),
(371),
(372),
(373),
(374),
(375),
(376),
(377),
(378),
(379),
(380),
(381),
(382),
(383),
(384),
(385),
(386),
(387),
(388),
(389),
(390),
(391),
(392),
(393),
(394),
(395),
(396),
(397),
(398),
(399),
(400),
(401),
(402),
(403),
(404),
(405),
(406),
(407),
(408),
(409),
(410),
(411),
(412),
(413),
(414),
(415),
(416),
(417),
(418),
(419),
(420),
(421),
(422),
(423),
(424),
(425),
(426),
(427),
(428),
(429),
(430),
(431),
(432),
(433),
(434),
(435),
(436),
(437),
(438),
(439),
(440),
(441),
(442),
(443),
(444),
(445),
(446),
(447),
(448),
(449),
(450),
(451),
(452),
(453),
(454),
(455),
(456),
(457),
(458),
(459),
(460),
(461),
(462),
(463),
(464),
(465),
(466),
(467),
(468),
(469),
(470),
(471),
(472),
(473),
(474),
(475),
(476),
(477),
(478),
(479),
(480),
(481),
(482),
(483),
(484),
(485),
(486),
(487),
(488),
(489),
(490),
(491),
(492),
(493),
(494),
(495),
(496),
(497),
(498),
(499),
(500),
(501),
(502),
(503),
(504),
(505),
(506),
(507),
(508),
(509),
(510),
(511);
/*!40000 ALTER TABLE `larder_lock` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_meta`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_meta` (
  `name` varbinary(64) NOT NULL,
  `value` varbinary(512) NOT NULL,
  PRIMARY KEY (`name`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_meta` DISABLE KEYS */;
INSERT INTO `larder_meta` VALUES
(0x6170706C696564,0x30),
(0x6170706C79696E67,0x30),
(0x63726561746564,0x323032362D31312D31355432303A35373A34355A),
(0x6E6578745F64625F6E756D626572,0x3136),
(0x6E6578745F6964,0x3635353337),
(0x6F776E6572,''),
(0x736368656D615F76657273696F6E,0x31),
(0x73796E636564,0x31373934373736323635393230313832);
/*!40000 ALTER TABLE `larder_meta` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_set`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_set` (
  `id` bigint(20) NOT NULL,
  `member` varbinary(1024) NOT NULL,
  `member_rest` longblob NOT NULL DEFAULT '',
  `ord` bigint(20) NOT NULL,
  PRIMARY KEY (`id`,`member`),
  KEY `larder_set_ord` (`id`,`ord`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_set` DISABLE KEYS */;
INSERT INTO `larder_set` VALUES
(4,0x6D,'',0),
(4,0x6E,'',1);
/*!40000 ALTER TABLE `larder_set` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_sets`;
/*!50001 DROP VIEW IF EXISTS `larder_sets`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_sets` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `member`,
 NULL AS `expires`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
DROP TABLE IF EXISTS `larder_strings`;
/*!50001 DROP VIEW IF EXISTS `larder_strings`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_strings` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `value`,
 NULL AS `expires`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
DROP TABLE IF EXISTS `larder_trash`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_trash` (
  `id` bigint(20) NOT NULL,
  `type` smallint(6) NOT NULL,
  PRIMARY KEY (`id`,`type`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_trash` DISABLE KEYS */;
/*!40000 ALTER TABLE `larder_trash` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_zset`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_zset` (
  `id` bigint(20) NOT NULL,
  `member` varbinary(1024) NOT NULL,
  `member_rest` longblob NOT NULL DEFAULT '',
  `score` double NOT NULL,
  `bits` bigint(20) NOT NULL,
  `place` bigint(20) GENERATED ALWAYS AS (if(`bits` < 0,-9223372036854775808 - `bits`,`bits`)) STORED,
  `ord` bigint(20) NOT NULL,
  PRIMARY KEY (`id`,`member`),
  KEY `larder_zset_score` (`id`,`place`,`member`,`bits`),
  KEY `larder_zset_ord` (`id`,`ord`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_zset` DISABLE KEYS */;
INSERT INTO `larder_zset` VALUES
(5,0x69,'',1.7976931348623157e308,9218868437227405312,9218868437227405312,1),
(5,0x6A,'',-1.7976931348623157e308,-4503599627370496,-9218868437227405312,2),
(5,0x6D,'',1.5,4609434218613702656,4609434218613702656,0);
/*!40000 ALTER TABLE `larder_zset` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_zset_block`;
/*!40101 SET @saved_cs_client     = @@character_set_client */;
/*!40101 SET character_set_client = utf8mb4 */;
CREATE TABLE `larder_zset_block` (
  `id` bigint(20) NOT NULL,
  `block` bigint(20) NOT NULL,
  `score` double NOT NULL,
  `bits` bigint(20) NOT NULL,
  `count` bigint(20) NOT NULL,
  `member` longblob NOT NULL,
  PRIMARY KEY (`id`,`block`)
) ENGINE=InnoDB DEFAULT CHARSET=binary ROW_FORMAT=DYNAMIC;
/*!40101 SET character_set_client = @saved_cs_client */;

/*!40000 ALTER TABLE `larder_zset_block` DISABLE KEYS */;
/*!40000 ALTER TABLE `larder_zset_block` ENABLE KEYS */;
DROP TABLE IF EXISTS `larder_zsets`;
/*!50001 DROP VIEW IF EXISTS `larder_zsets`*/;
SET @saved_cs_client     = @@character_set_client;
SET character_set_client = utf8mb4;
/*!50001 CREATE VIEW `larder_zsets` AS SELECT
 NULL AS `db`,
 NULL AS `key`,
 NULL AS `member`,
 NULL AS `score`,
 NULL AS `expires`,
 NULL AS `key_bytes` */;
SET character_set_client = @saved_cs_client;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_get` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_get`(p_key LONGBLOB) RETURNS longblob
    READS SQL DATA
    SQL SECURITY INVOKER
RETURN larder_get_in(0, p_key)
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_get_in` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_get_in`(p_db INT, p_key LONGBLOB) RETURNS longblob
    READS SQL DATA
    SQL SECURITY INVOKER
RETURN (SELECT larder_string(k.id, k.value)  FROM larder_db AS d JOIN larder_key AS k ON k.db = d.number  WHERE d.db = p_db AND k.`key` = larder_name(p_key) AND k.type = 1 AND (k.expire_at = 0 OR k.expire_at > CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)))
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_lock_name` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_lock_name`() RETURNS varchar(64) CHARSET latin1 COLLATE latin1_swedish_ci
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN CONCAT('larder ', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40))
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_name` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_name`(name LONGBLOB) RETURNS varbinary(1024)
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN IF(LENGTH(name) <= 1000, name,  CONCAT(SUBSTR(name, 1, 992), UNHEX(SHA2(name, 256))))
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_reader_name` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_reader_name`() RETURNS varchar(64) CHARSET latin1 COLLATE latin1_swedish_ci
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN CONCAT('larder reader ', SUBSTR(SHA2(CONCAT(DATABASE(), '.larder_meta'), 256), 1, 40))
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_rest` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_rest`(name LONGBLOB) RETURNS longblob
    NO SQL
    DETERMINISTIC
    SQL SECURITY INVOKER
RETURN IF(LENGTH(name) <= 1000, '', SUBSTR(name, 993))
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP FUNCTION IF EXISTS `larder_string` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` FUNCTION `larder_string`(p_id BIGINT, p_value LONGBLOB) RETURNS longblob
    READS SQL DATA
    SQL SECURITY INVOKER
BEGIN DECLARE done INT DEFAULT 0; DECLARE part LONGBLOB; DECLARE result LONGBLOB DEFAULT ''; DECLARE c CURSOR FOR SELECT value FROM larder_chunk WHERE id = p_id ORDER BY pos; DECLARE CONTINUE HANDLER FOR NOT FOUND SET done = 1; IF p_id = 0 THEN RETURN p_value; END IF; OPEN c; FETCH c INTO part; WHILE NOT done DO SET result = CONCAT(result, part); FETCH c INTO part; END WHILE; CLOSE c; RETURN result; END
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `larder_counted` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `larder_counted`(p_number INT, p_keys INT, p_expires INT)
    SQL SECURITY INVOKER
IF p_keys <> 0 OR p_expires <> 0 THEN  INSERT INTO larder_count (number, slot, `keys`, expires)   VALUES (p_number, 1000 + CONNECTION_ID() % 64, p_keys, p_expires)   ON DUPLICATE KEY UPDATE `keys` = `keys` + VALUES(`keys`), expires = expires + VALUES(expires); END IF
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `larder_del` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `larder_del`(p_key LONGBLOB)
    SQL SECURITY INVOKER
CALL larder_del_in(0, p_key)
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `larder_del_in` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `larder_del_in`(p_db INT, p_key LONGBLOB)
    SQL SECURITY INVOKER
BEGIN DECLARE num INT; DECLARE now_us BIGINT DEFAULT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED); DECLARE old_seq, old_id, old_type, old_expire BIGINT DEFAULT NULL; DECLARE CONTINUE HANDLER FOR NOT FOUND SET old_seq = NULL; IF IS_USED_LOCK(larder_lock_name()) IS NOT NULL OR IS_USED_LOCK(larder_reader_name()) IS NOT NULL THEN  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =  'a Larder server has these tables for itself alone (mode exclusive)'; END IF; IF (SELECT value FROM larder_meta WHERE name = 'owner') <> '' THEN  IF EXISTS (SELECT 1 FROM larder_journal WHERE seq >   (SELECT CAST(value AS SIGNED) FROM larder_meta WHERE name = 'applied')) THEN   SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =   'the journal of a Larder server has to be applied first: start one'; END IF;  UPDATE larder_meta SET value = '' WHERE name = 'owner'; END IF; SELECT n INTO num FROM larder_lock WHERE n = -1 LOCK IN SHARE MODE; SELECT n INTO num FROM larder_lock WHERE n = CONV(SUBSTR(SHA2(p_key, 256), 1, 3), 16, 10) DIV 8  FOR UPDATE; SET num = NULL; SELECT d.number INTO num FROM larder_db AS d WHERE d.db = p_db; IF num IS NULL THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'there is no such database'; END IF; SELECT seq, id, type, expire_at INTO old_seq, old_id, old_type, old_expire FROM larder_key  WHERE db = num AND `key` = larder_name(p_key) AND type <> 0  AND (expire_at = 0 OR expire_at > now_us DIV 1000) FOR UPDATE; IF old_seq IS NOT NULL THEN IF old_id <> 0 THEN INSERT IGNORE INTO larder_trash (id, type) VALUES (old_id, old_type); END IF;  UPDATE larder_key SET type = 0, id = 0, size = 0, first = 0, value = '', expire_at = -1,   version = GREATEST(version + 1, now_us) WHERE seq = old_seq;  CALL larder_counted(num, -1, -(old_expire > 0)); END IF; END
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `larder_set` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `larder_set`(p_key LONGBLOB, p_value LONGBLOB, p_ttl_ms BIGINT)
    SQL SECURITY INVOKER
CALL larder_set_in(0, p_key, p_value, p_ttl_ms)
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50003 SET @saved_sql_mode       = @@sql_mode */ ;
/*!50003 SET sql_mode              = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION' */ ;
/*!50003 DROP PROCEDURE IF EXISTS `larder_set_in` */;
/*!50003 SET @saved_cs_client      = @@character_set_client */ ;
/*!50003 SET @saved_cs_results     = @@character_set_results */ ;
/*!50003 SET @saved_col_connection = @@collation_connection */ ;
/*!50003 SET character_set_client  = binary */ ;
/*!50003 SET character_set_results = binary */ ;
/*!50003 SET collation_connection  = binary */ ;
DELIMITER ;;
CREATE DEFINER=`root`@`localhost` PROCEDURE `larder_set_in`(p_db INT, p_key LONGBLOB, p_value LONGBLOB, p_ttl_ms BIGINT)
    SQL SECURITY INVOKER
BEGIN DECLARE num INT; DECLARE now_us BIGINT DEFAULT CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED); DECLARE ends BIGINT DEFAULT 0; DECLARE long_id, pos BIGINT DEFAULT 0; DECLARE old_seq, old_id, old_type, old_expire BIGINT DEFAULT NULL; IF IS_USED_LOCK(larder_lock_name()) IS NOT NULL OR IS_USED_LOCK(larder_reader_name()) IS NOT NULL THEN  SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =  'a Larder server has these tables for itself alone (mode exclusive)'; END IF; IF (SELECT value FROM larder_meta WHERE name = 'owner') <> '' THEN  IF EXISTS (SELECT 1 FROM larder_journal WHERE seq >   (SELECT CAST(value AS SIGNED) FROM larder_meta WHERE name = 'applied')) THEN   SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =   'the journal of a Larder server has to be applied first: start one'; END IF;  UPDATE larder_meta SET value = '' WHERE name = 'owner'; END IF; SELECT n INTO num FROM larder_lock WHERE n = -1 LOCK IN SHARE MODE; SELECT n INTO num FROM larder_lock WHERE n = CONV(SUBSTR(SHA2(p_key, 256), 1, 3), 16, 10) DIV 8  FOR UPDATE; SET num = NULL; SELECT d.number INTO num FROM larder_db AS d WHERE d.db = p_db; IF num IS NULL THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'there is no such database'; END IF; IF p_ttl_ms <= 0 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT =  'a time to live has to be longer than nothing'; END IF; IF p_ttl_ms IS NOT NULL THEN SET ends = now_us DIV 1000 + p_ttl_ms; END IF; IF LENGTH(p_value) > 65536 THEN  UPDATE larder_meta SET value = LAST_INSERT_ID(CAST(value AS SIGNED)) + 1 WHERE name = 'next_id';  SET long_id = LAST_INSERT_ID();  WHILE pos * 16384 < LENGTH(p_value) DO   INSERT INTO larder_chunk (id, pos, value) VALUES (long_id, pos, SUBSTR(p_value, pos * 16384 + 1, 16384));   SET pos = pos + 1; END WHILE; END IF; INSERT INTO larder_key (db, `key`, key_rest, type, id, size, first, version, expire_at, value)  VALUES (num, larder_name(p_key), larder_rest(p_key), 0, 0, 0, 0, 1, -1, '')  ON DUPLICATE KEY UPDATE version = version + 1; SELECT seq, id, type, expire_at INTO old_seq, old_id, old_type, old_expire FROM larder_key  WHERE db = num AND `key` = larder_name(p_key) FOR UPDATE; IF old_id <> 0 THEN INSERT IGNORE INTO larder_trash (id, type) VALUES (old_id, old_type); END IF; UPDATE larder_key SET type = 1, id = long_id, size = IF(long_id = 0, 0, LENGTH(p_value)), first = 0,  version = GREATEST(version, now_us), expire_at = ends, value = IF(long_id = 0, p_value, '')  WHERE seq = old_seq; CALL larder_counted(num, 1 - (old_expire >= 0), (ends > 0) - (old_expire > 0)); END
;;
DELIMITER ;
/*!50003 SET sql_mode              = @saved_sql_mode */ ;
/*!50003 SET character_set_client  = @saved_cs_client */ ;
/*!50003 SET character_set_results = @saved_cs_results */ ;
/*!50003 SET collation_connection  = @saved_col_connection */ ;
/*!50001 DROP VIEW IF EXISTS `larder_hashes`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_hashes` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,convert(if(`i`.`field_rest` = '',`i`.`field`,concat(substr(`i`.`field`,1,992),`i`.`field_rest`)) using utf8mb4) AS `field`,convert(`i`.`value` using utf8mb4) AS `value`,case when case when `i`.`expire_at` = 0 then `k`.`expire_at` when `k`.`expire_at` = 0 then `i`.`expire_at` else least(`i`.`expire_at`,`k`.`expire_at`) end > 0 then cast('1970-01-01 00:00:00.000' + interval case when `i`.`expire_at` = 0 then `k`.`expire_at` when `k`.`expire_at` = 0 then `i`.`expire_at` else least(`i`.`expire_at`,`k`.`expire_at`) end * 1000 microsecond as datetime(3)) end AS `expires`,`k`.`key` AS `key_bytes` from ((`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) join `larder_hash` `i` on(`i`.`id` = `k`.`id`)) where `k`.`type` = 2 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) and (`i`.`expire_at` = 0 or `i`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!50001 DROP VIEW IF EXISTS `larder_keys`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_keys` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,case `k`.`type` when 1 then 'string' when 2 then 'hash' when 3 then 'list' when 4 then 'set' when 5 then 'zset' end AS `type`,case when `k`.`type` = 1 and `k`.`id` = 0 then octet_length(`k`.`value`) when `k`.`type` = 2 and `k`.`first` <> 0 and `k`.`first` <= cast(unix_timestamp(current_timestamp(3)) * 1000 as signed) then `k`.`size` - (select count(0) from `larder_hash` `f` where `f`.`id` = `k`.`id` and `f`.`expire_at` <> 0 and `f`.`expire_at` <= cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) else `k`.`size` end AS `size`,case when `k`.`expire_at` > 0 then cast('1970-01-01 00:00:00.000' + interval `k`.`expire_at` * 1000 microsecond as datetime(3)) end AS `expires`,case when `k`.`expire_at` > 0 then (`k`.`expire_at` - cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) / 1000 end AS `ttl`,`k`.`version` AS `version`,`k`.`key` AS `key_bytes` from (`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) where `k`.`type` <> 0 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) and (`k`.`type` <> 2 or `k`.`first` = 0 or `k`.`first` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed) or `k`.`size` <> (select count(0) from `larder_hash` `f` where `f`.`id` = `k`.`id` and `f`.`expire_at` <> 0 and `f`.`expire_at` <= cast(unix_timestamp(current_timestamp(3)) * 1000 as signed))) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!50001 DROP VIEW IF EXISTS `larder_lists`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_lists` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,`i`.`pos` - `k`.`first` AS `position`,convert(`i`.`value` using utf8mb4) AS `value`,case when `k`.`expire_at` > 0 then cast('1970-01-01 00:00:00.000' + interval `k`.`expire_at` * 1000 microsecond as datetime(3)) end AS `expires`,`k`.`key` AS `key_bytes` from ((`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) join `larder_list` `i` on(`i`.`id` = `k`.`id`)) where `k`.`type` = 3 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!50001 DROP VIEW IF EXISTS `larder_sets`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_sets` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,convert(if(`i`.`member_rest` = '',`i`.`member`,concat(substr(`i`.`member`,1,992),`i`.`member_rest`)) using utf8mb4) AS `member`,case when `k`.`expire_at` > 0 then cast('1970-01-01 00:00:00.000' + interval `k`.`expire_at` * 1000 microsecond as datetime(3)) end AS `expires`,`k`.`key` AS `key_bytes` from ((`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) join `larder_set` `i` on(`i`.`id` = `k`.`id`)) where `k`.`type` = 4 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!50001 DROP VIEW IF EXISTS `larder_strings`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_strings` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,convert(`larder_string`(`k`.`id`,`k`.`value`) using utf8mb4) AS `value`,case when `k`.`expire_at` > 0 then cast('1970-01-01 00:00:00.000' + interval `k`.`expire_at` * 1000 microsecond as datetime(3)) end AS `expires`,`k`.`key` AS `key_bytes` from (`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) where `k`.`type` = 1 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!50001 DROP VIEW IF EXISTS `larder_zsets`*/;
/*!50001 SET @saved_cs_client          = @@character_set_client */;
/*!50001 SET @saved_cs_results         = @@character_set_results */;
/*!50001 SET @saved_col_connection     = @@collation_connection */;
/*!50001 SET character_set_client      = binary */;
/*!50001 SET character_set_results     = binary */;
/*!50001 SET collation_connection      = binary */;
/*!50001 CREATE ALGORITHM=UNDEFINED */
/*!50013 DEFINER=`root`@`localhost` SQL SECURITY DEFINER */
/*!50001 VIEW `larder_zsets` AS select `d`.`db` AS `db`,convert(if(`k`.`key_rest` = '',`k`.`key`,concat(substr(`k`.`key`,1,992),`k`.`key_rest`)) using utf8mb4) AS `key`,convert(if(`i`.`member_rest` = '',`i`.`member`,concat(substr(`i`.`member`,1,992),`i`.`member_rest`)) using utf8mb4) AS `member`,`i`.`score` AS `score`,case when `k`.`expire_at` > 0 then cast('1970-01-01 00:00:00.000' + interval `k`.`expire_at` * 1000 microsecond as datetime(3)) end AS `expires`,`k`.`key` AS `key_bytes` from ((`larder_key` `k` join `larder_db` `d` on(`d`.`number` = `k`.`db`)) join `larder_zset` `i` on(`i`.`id` = `k`.`id`)) where `k`.`type` = 5 and (`k`.`expire_at` = 0 or `k`.`expire_at` > cast(unix_timestamp(current_timestamp(3)) * 1000 as signed)) */;
/*!50001 SET character_set_client      = @saved_cs_client */;
/*!50001 SET character_set_results     = @saved_cs_results */;
/*!50001 SET collation_connection      = @saved_col_connection */;
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */;

/*!40101 SET SQL_MODE=@OLD_SQL_MODE */;
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */;
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */;
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */;
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */;
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */;
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */;

